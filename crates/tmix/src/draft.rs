//! Builder of a connection vector from its lines, which checks their order and converts them to the canonical form.

use crate::line::{MAX_ADUS, TraceLine};
use crate::vector::{Adu, ConnectionKind, ConnectionVector, PerSide, Side};
use fullpipe_units::Duration;

/// The wait of a unit that follows another without a stated wait. Waits of 0 mark the first unit.
const LEAST: Duration = Duration::from_micros(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Original,
    Alternate,
}

#[derive(Debug)]
pub(crate) struct VectorBuilder {
    vector: ConnectionVector,
    body: Vec<Adu>,
    style: Option<Style>,
    /// `t`: the wait before the next unit or the close.
    wait: Option<Duration>,
    /// `t>`, `t<`: the wait before the side's next unit or close.
    side_wait: PerSide<Option<Duration>>,
    /// Whether the side has sent a unit.
    sent: PerSide<bool>,
    /// The close of each side.
    closes: PerSide<Option<Adu>>,
}

impl VectorBuilder {
    /// Starts a connection from its first line. `None` if the line is not a first line.
    pub(crate) fn begin(line: &TraceLine) -> Option<VectorBuilder> {
        let (start, kind, ids) = match *line {
            TraceLine::Sequential { start, epochs, ids } => (start, ConnectionKind::Sequential { epochs }, ids),
            TraceLine::Concurrent { start, adus, ids } => (start, ConnectionKind::Concurrent { adus }, ids),
            _ => return None,
        };
        let body = Box::default();
        let vector =
            ConnectionVector { start, kind, ids, mss_bytes: None, window_bytes: None, rtt: None, loss: None, body };
        Some(VectorBuilder {
            vector,
            body: Vec::new(),
            style: None,
            wait: None,
            side_wait: PerSide::default(),
            sent: PerSide::default(),
            closes: PerSide::default(),
        })
    }

    /// Adds the connection's next line.
    pub(crate) fn add(&mut self, line: TraceLine) -> Result<(), String> {
        match line {
            TraceLine::Mss(value) => self.header("m", |vector| vector.mss_bytes.replace(value).is_some()),
            TraceLine::Window(value) => self.header("w", |vector| vector.window_bytes.replace(value).is_some()),
            TraceLine::Rtt(value) => self.header("r", |vector| vector.rtt.replace(value).is_some()),
            TraceLine::Loss(value) => self.header("l", |vector| vector.loss.replace(value).is_some()),
            TraceLine::Send(side, size) => self.original(true).and_then(|()| self.take_turn(side, size)),
            TraceLine::Wait(wait) => self.original(true).and_then(|()| self.wait_before_turn(wait)),
            TraceLine::SideSend(side, size) => self.original(false).and_then(|()| self.send(side, size)),
            TraceLine::SideWait(side, wait) => self.original(false).and_then(|()| self.wait_of_side(side, wait)),
            TraceLine::Alternate { side, send_wait, receive_wait, size_bytes } => {
                self.style(Style::Alternate)?;
                let adu = Adu { side, send_wait, receive_wait, size_bytes };
                if self.vector.is_sequential() { self.alternate_turn(adu) } else { self.alternate_unit(adu) }
            }
            TraceLine::Sequential { .. } | TraceLine::Concurrent { .. } => {
                Err("a connection starts within another connection".to_string())
            }
        }
    }

    /// Returns the connection if it is complete.
    pub(crate) fn finish(mut self) -> Result<ConnectionVector, String> {
        match self.vector.kind {
            ConnectionKind::Sequential { epochs } => self.close_turns(epochs)?,
            ConnectionKind::Concurrent { adus } => self.close_sides(adus)?,
        }
        self.vector.body = self.body.into_boxed_slice();
        Ok(self.vector)
    }

    fn header(&mut self, word: &str, put: impl FnOnce(&mut ConnectionVector) -> bool) -> Result<(), String> {
        if self.style.is_some() {
            return Err(format!("`{word}` after the first ADU; expected before it"));
        }
        if put(&mut self.vector) {
            return Err(format!("a second `{word}` for one connection"));
        }
        Ok(())
    }

    fn style(&mut self, style: Style) -> Result<(), String> {
        if self.body.len() as u64 >= MAX_ADUS {
            return Err(format!("more than {MAX_ADUS} ADUs in one connection"));
        }
        if *self.style.get_or_insert(style) != style {
            return Err("the body mixes original (>, <, t) and alternate (I, A) lines".to_string());
        }
        Ok(())
    }

    /// Checks that a line of an original body has the kind of the connection, sequential or concurrent.
    fn original(&mut self, sequential: bool) -> Result<(), String> {
        self.style(Style::Original)?;
        match (self.vector.is_sequential(), sequential) {
            (true, false) => Err("c>, c<, t> and t< belong to a concurrent connection (CONC, C)".to_string()),
            (false, true) => Err(">, < and t belong to a sequential connection (SEQ, S)".to_string()),
            _ => Ok(()),
        }
    }

    /// The send-wait and the receive-wait of a unit that is sent `wait` after the preceding one.
    fn waits(&self, side: Side, wait: Duration) -> (Duration, Duration) {
        match self.body.last() {
            None => (Duration::ZERO, Duration::ZERO),
            Some(last) if last.side == side => (wait.max(LEAST), Duration::ZERO),
            Some(_) => (Duration::ZERO, wait.max(LEAST)),
        }
    }

    fn take_turn(&mut self, side: Side, size_bytes: u64) -> Result<(), String> {
        let wait = self.wait.take().unwrap_or_default();
        let (send_wait, receive_wait) = self.waits(side, wait);
        self.body.push(Adu { side, send_wait, receive_wait, size_bytes });
        Ok(())
    }

    fn wait_before_turn(&mut self, wait: Duration) -> Result<(), String> {
        if self.body.is_empty() {
            return Err("a wait before the first ADU; expected > or <".to_string());
        }
        match self.wait.replace(wait) {
            None => Ok(()),
            Some(_) => Err("two waits with no ADU between them".to_string()),
        }
    }

    fn send(&mut self, side: Side, size_bytes: u64) -> Result<(), String> {
        let wait = self.side_wait.get_mut(side).take().unwrap_or_default();
        self.push_unit(side, wait, size_bytes);
        Ok(())
    }

    fn push_unit(&mut self, side: Side, wait: Duration, size_bytes: u64) {
        let sent = self.sent.get_mut(side);
        let send_wait = if *sent { wait.max(LEAST) } else { wait };
        *sent = true;
        self.body.push(Adu { side, send_wait, receive_wait: Duration::ZERO, size_bytes });
    }

    fn wait_of_side(&mut self, side: Side, wait: Duration) -> Result<(), String> {
        match self.side_wait.get_mut(side).replace(wait) {
            None => Ok(()),
            Some(_) => Err("two waits of one side with no ADU between them".to_string()),
        }
    }

    fn alternate_turn(&mut self, adu: Adu) -> Result<(), String> {
        if self.body.last().is_some_and(Adu::is_close) {
            return Err("an ADU after the close (size 0)".to_string());
        }
        let waits = match (adu.send_wait.is_zero(), adu.receive_wait.is_zero()) {
            (false, false) => return Err("both waits are above 0; expected one".to_string()),
            _ if self.body.is_empty() && adu.is_close() => {
                return Err("a close before any ADU".to_string());
            }
            (true, true) => self.waits(adu.side, Duration::ZERO),
            _ if self.body.is_empty() => return Err("the first ADU has a wait; expected 0 0".to_string()),
            _ => (adu.send_wait, adu.receive_wait),
        };
        if !waits.0.is_zero() && !self.sent.get(adu.side) {
            return Err("a send-wait of a side that has sent nothing yet".to_string());
        }
        if !waits.1.is_zero() && !self.sent.get(adu.side.other()) {
            return Err("a receive-wait before the peer has sent anything".to_string());
        }
        *self.sent.get_mut(adu.side) = true;
        self.body.push(Adu { send_wait: waits.0, receive_wait: waits.1, ..adu });
        Ok(())
    }

    fn alternate_unit(&mut self, adu: Adu) -> Result<(), String> {
        if !adu.receive_wait.is_zero() {
            return Err("a receive-wait in a concurrent connection; expected 0".to_string());
        }
        if self.closes.get(adu.side).is_some() {
            return Err("an ADU after this side's close (size 0)".to_string());
        }
        if adu.is_close() {
            *self.closes.get_mut(adu.side) = Some(Adu { send_wait: adu.send_wait.max(LEAST), ..adu });
        } else {
            self.push_unit(adu.side, adu.send_wait, adu.size_bytes);
        }
        Ok(())
    }

    fn close_turns(&mut self, epochs: u64) -> Result<(), String> {
        let adus = self.body.iter().filter(|adu| !adu.is_close()).count() as u64;
        if adus < epochs {
            return Err(format!("the connection has {adus} ADUs, too few for its {epochs} epochs"));
        }
        // There is at least one unit, since there is at least one epoch.
        if let Some(last) = self.body.last().filter(|last| !last.is_close()) {
            let send_wait = self.wait.take().unwrap_or_default().max(LEAST);
            self.body.push(Adu { side: last.side, send_wait, receive_wait: Duration::ZERO, size_bytes: 0 });
        }
        Ok(())
    }

    fn close_sides(&mut self, declared: PerSide<u64>) -> Result<(), String> {
        for (side, name) in [(Side::Initiator, "initiator"), (Side::Acceptor, "acceptor")] {
            let found = self.body.iter().filter(|adu| adu.side == side).count() as u64;
            let declared = *declared.get(side);
            if found != declared {
                return Err(format!(
                    "the connection has {found} ADUs of the {name}, but its first line declares {declared}"
                ));
            }
        }
        if self.body.is_empty() {
            return Err("the connection has no ADU".to_string());
        }
        for side in [Side::Initiator, Side::Acceptor] {
            let wait = self.side_wait.get_mut(side).take().unwrap_or_default().max(LEAST);
            let close = Adu { side, send_wait: wait, receive_wait: Duration::ZERO, size_bytes: 0 };
            self.body.push(self.closes.get(side).unwrap_or(close));
        }
        Ok(())
    }
}
