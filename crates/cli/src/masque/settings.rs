//! Converts arguments into settings of connections.

use super::arguments::{self, BufferArguments};
use crate::exit::Failure;
use fullpipe_masque::configuration::{MIN_MTU, MTU_FOR_INITIALS, Mtu, Tunnel};
use fullpipe_sockets::programs::ControlChoice;
use std::time::Duration;

/// Returns the congestion control with this name in scenarios.
pub(super) fn control(arguments: &arguments::ControlArguments) -> Result<ControlChoice, Failure> {
    let control = ControlChoice::named(&arguments.congestion, !arguments.no_hystart).map_err(super::failure)?;
    Ok(match arguments.initial_window {
        Some(packets) => control.with_initial_window(packets),
        None => control,
    })
}

/// Returns the congestion control of a tunnel, which may be `none`.
pub(super) fn tunnel_control(name: &str, arguments: &arguments::ControlArguments) -> Result<ControlChoice, Failure> {
    if name == "none" {
        return Ok(ControlChoice::none());
    }
    let (congestion, no_hystart, initial_window) = (name.to_owned(), arguments.no_hystart, arguments.initial_window);
    control(&arguments::ControlArguments { congestion, no_hystart, initial_window })
}

/// Returns the settings of a tunnel with the packet size of the user.
pub(super) fn tunnel(mtu: Option<u16>, defaults: Tunnel) -> Tunnel {
    Tunnel { mtu: mtu.map_or(defaults.mtu, Mtu::Fixed), ..defaults }
}

/// Returns the settings with the buffer sizes of the user.
pub(super) fn buffered(buffers: &BufferArguments, defaults: Tunnel) -> Tunnel {
    Tunnel {
        stream_buffer: buffers.send_buffer.unwrap_or(defaults.stream_buffer),
        receive_window: buffers.receive_buffer.unwrap_or(defaults.receive_window),
        ..defaults
    }
}

/// The default idle timeout of an end-to-end connection.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// The send buffer of an end-to-end connection, as in virtual time.
const SEND_BUFFER_BYTES: u64 = 8 << 20;

/// Returns the settings of an end-to-end connection. It begins with packets that every path supports, including tunnels
/// (RFC 9000 section 14.1).
pub(super) fn end_to_end(mtu: Option<u16>, buffers: &BufferArguments, silence: Duration) -> Tunnel {
    let defaults = Tunnel {
        mtu: Mtu::Discover(MIN_MTU),
        connection_idle: silence,
        stream_buffer: SEND_BUFFER_BYTES,
        ..Tunnel::default()
    };
    buffered(buffers, tunnel(mtu, defaults))
}

/// Prints a warning about the effect of a small tunnel MTU.
pub(super) fn warn_of_mtu(mtu: Mtu) {
    if mtu.initial() < MTU_FOR_INITIALS {
        eprintln!(
            "note: a tunnel MTU of {} bytes is too small for the packets of 1200 bytes with which QUIC connections start; \
             these require {MTU_FOR_INITIALS} bytes",
            mtu.initial()
        );
    }
}
