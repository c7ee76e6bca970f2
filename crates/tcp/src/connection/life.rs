//! The timers of an open connection: keep-alive (RFC 9293 section 3.8.4) and the limit of FIN-WAIT-2.
//!
//! **Model.** A connection with no outstanding data that has received nothing for the idle time sends a keep-alive
//! probe. The probe is a segment without payload whose sequence number is one too low, to which a reachable peer must
//! respond. After a number of unanswered probes, sent at an interval, the connection is aborted. While data is
//! outstanding, the retransmission timer detects an unreachable peer instead. In FIN-WAIT-2, the peer may continue to
//! send indefinitely, unless a limit is set.

use super::{Connection, pending};
use crate::config::KeepAlive;
use crate::status::State;
use fullpipe_transport::CloseReason;
use fullpipe_units::Instant;

/// State of the keep-alive timer and the FIN-WAIT-2 timer.
#[derive(Debug)]
pub(super) struct ConnectionTimers {
    /// Time of the next keep-alive probe or check.
    keep_alive_at: Instant,
    /// Keep-alive probes sent since the last segment of the peer.
    unanswered: u32,
    /// End of FIN-WAIT-2.
    half_close_at: Instant,
}

impl Default for ConnectionTimers {
    fn default() -> ConnectionTimers {
        ConnectionTimers { keep_alive_at: Instant::NEVER, unanswered: 0, half_close_at: Instant::NEVER }
    }
}

impl Connection {
    /// Starts the keep-alive timer of an open connection.
    pub(super) fn begin_life(&mut self, now: Instant) {
        self.last_heard_at = now;
        if let Some(keep_alive) = self.config.keep_alive {
            self.rare().life.keep_alive_at = now.saturating_add(keep_alive.idle);
            self.arm_life();
        }
    }

    /// Starts the limit of FIN-WAIT-2.
    pub(super) fn limit_half_close(&mut self, now: Instant) {
        if let Some(longest) = self.config.fin_wait_2_timeout {
            self.rare().life.half_close_at = now.saturating_add(longest);
            self.arm_life();
        }
    }

    /// Stops both timers.
    pub(super) fn end_life(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.life = ConnectionTimers::default();
        }
        self.life_at = Instant::NEVER;
    }

    fn arm_life(&mut self) {
        self.life_at =
            self.rare.as_ref().map_or(Instant::NEVER, |rare| rare.life.keep_alive_at.min(rare.life.half_close_at));
    }

    #[cold]
    pub(super) fn on_life_timer(&mut self, now: Instant) {
        let ConnectionTimers { keep_alive_at, half_close_at, .. } = self.rare().life;
        if half_close_at <= now && self.state == State::FinWait2 {
            return self.close(CloseReason::TimedOut);
        }
        if keep_alive_at <= now
            && let Some(keep_alive) = self.config.keep_alive
        {
            self.look_for_life(now, keep_alive);
        }
        self.arm_life();
    }

    fn look_for_life(&mut self, now: Instant, keep_alive: KeepAlive) {
        let heard_at = self.last_heard_at;
        let watched = self.sender.is_outstanding();
        let life = &mut self.rare().life;
        let silent = now.saturating_since(heard_at);
        if watched || silent < keep_alive.idle {
            life.unanswered = 0;
            let from = if watched { now } else { heard_at };
            life.keep_alive_at = from.saturating_add(keep_alive.idle);
        } else if life.unanswered >= keep_alive.probes {
            self.close(CloseReason::TimedOut);
        } else {
            life.unanswered += 1;
            life.keep_alive_at = now.saturating_add(keep_alive.interval);
            self.pending |= pending::KEEP_ALIVE;
        }
    }
}
