//! System calls for which no library has a safe function: packet sockets with arrival timestamps, batches of packets,
//! interface offloads, and namespaces. All `unsafe` code of this crate is in this file.
//!
//! Sources: packet(7), recvmmsg(2), sendmmsg(2), socket(7), unshare(2), the kernel's `ethtool.h` and `if_packet.h`.

#![allow(unsafe_code)]

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// Maximum number of packets per call.
pub(crate) const BATCH: usize = 64;

/// Buffer size of one frame: the largest IP packet, an Ethernet header and a VLAN tag.
pub(crate) const FRAME_BYTES: usize = 65_536 + 18;

/// Moves the calling thread to new namespaces.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // This call would be unsafe if it gave the thread a separate descriptor table, which other threads would not
    // expect.
    assert!(!flags.contains(UnshareFlags::FILES), "the descriptor table must stay shared");
    // SAFETY: the assertion above excludes a separate descriptor table.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn set_option<T>(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads exactly the size of `T` in bytes.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result).map(|_| ())
}

/// Opens a socket that receives all frames of an interface of the current network namespace, with their arrival
/// timestamps. The socket does not receive the frames that it sends.
///
/// # Errors
/// Returns the kernel's error: missing permission (`CAP_NET_RAW`), or no such interface.
pub(crate) fn packet_socket(interface: u32, buffer_bytes: u32) -> io::Result<OwnedFd> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: no memory is involved; a nonnegative descriptor is new and owned by this function.
    let socket = unsafe {
        let socket =
            check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0))?;
        OwnedFd::from_raw_fd(socket)
    };
    let fd = std::os::fd::AsFd::as_fd(&socket);
    let on: c_int = 1;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on)?;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &on)?;
    ask_for_stamps(fd)?;
    ask_for_buffer(fd, buffer_bytes)?;
    if set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &buffer_bytes).is_err() {
        set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &buffer_bytes)?;
    }
    // SAFETY: all-zero bytes are a valid address, which is then filled in; the kernel reads the address and keeps no
    // pointer to it.
    unsafe {
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = interface as c_int;
        check(libc::bind(
            fd.as_raw_fd(),
            ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        ))?;
    }
    Ok(socket)
}

/// Creates a TUN interface with this name in the current network namespace. Packets sent to the interface can be read
/// from the descriptor, one IP packet per read. The interface receives packets that are written to the descriptor.
///
/// # Errors
/// Returns the kernel's error; for example, opening `/dev/net/tun` may not be permitted.
pub(crate) fn tun(name: &str) -> io::Result<OwnedFd> {
    const TUNSETIFF: u64 = 0x4004_54ca;
    const TUN_WITHOUT_HEADER: libc::c_short = 0x0001 | 0x1000;
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an interface's name has at most 15 bytes"));
    }
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/net/tun", flags, rustix::fs::Mode::empty())?;
    // SAFETY: an all-zero request is valid; its name stays null-terminated; the kernel keeps no pointer to the request.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = TUN_WITHOUT_HEADER;
        check(libc::ioctl(device.as_raw_fd(), TUNSETIFF as _, ptr::from_mut(&mut request)))?;
    }
    Ok(device)
}

/// Enables the kernel's timestamps of received frames on a socket.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn ask_for_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: c_int = 1;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
}

/// Sets the size of a socket's receive buffer. Without privileges, the kernel limits the size to `rmem_max`.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn ask_for_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
}

/// Returns the number of frames that a packet socket has dropped since the last call.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: the kernel writes at most the size of the structure.
    unsafe {
        let mut statistics: libc::tpacket_stats = zeroed();
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        check(libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            ptr::from_mut(&mut statistics).cast(),
            &mut length,
        ))?;
        Ok(u64::from(statistics.tp_drops))
    }
}

/// The metadata of a received frame in a [`Receiver`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedMetadata {
    /// Number of bytes received.
    pub(crate) bytes: usize,
    /// The kernel's arrival timestamp in nanoseconds since 1970; `None` if there is none.
    pub(crate) stamp_nanos: Option<u64>,
}

/// Buffer for one control message with a timestamp, aligned as the kernel's structures require.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// Buffers that receive batches of frames.
pub(crate) struct Receiver {
    frames: Box<[u8]>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Receiver").finish_non_exhaustive()
    }
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Receiver { frames: vec![0; BATCH * FRAME_BYTES].into_boxed_slice() }
    }

    /// Returns the bytes of the n-th frame of the last batch.
    pub(crate) fn frame(&self, number: usize, bytes: usize) -> &[u8] {
        let begin = number * FRAME_BYTES;
        &self.frames[begin..begin + bytes.min(FRAME_BYTES)]
    }

    /// Receives the available frames, at most [`BATCH`], and returns their number. Never blocks.
    ///
    /// # Errors
    /// Returns the kernel's error; it is not an error if no frame is available.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        into: &mut [ReceivedMetadata; BATCH],
    ) -> io::Result<usize> {
        let mut controls = [Control([0; 64]); BATCH];
        // SAFETY: all-zero vectors and headers are valid; the pointers in them refer to `self.frames` and `controls`,
        // which outlive the call and do not overlap.
        unsafe {
            let mut vectors: [libc::iovec; BATCH] = zeroed();
            let mut headers: [libc::mmsghdr; BATCH] = zeroed();
            let places = self.frames.chunks_exact_mut(FRAME_BYTES).zip(&mut controls);
            for ((vector, header), (frame, control)) in vectors.iter_mut().zip(&mut headers).zip(places) {
                vector.iov_base = frame.as_mut_ptr().cast();
                vector.iov_len = frame.len();
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = control.0.len() as _;
            }
            let count = libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            );
            let count = match check(count) {
                Ok(count) => count as usize,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
            for (header, received) in headers.iter().zip(into.iter_mut()).take(count) {
                *received = ReceivedMetadata { bytes: header.msg_len as usize, stamp_nanos: stamp(&header.msg_hdr) };
            }
            Ok(count)
        }
    }
}

/// Returns the arrival timestamp from the control messages of a message, if there is one.
///
/// # Safety
/// The kernel must have filled in the header, and its control buffer must still exist.
unsafe fn stamp(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the macros traverse the control buffer within the length that the kernel wrote; the timespec may be
    // unaligned, so it is copied.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = message.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_TIMESTAMPNS {
                let time: libc::timespec = ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                return u64::try_from(time.tv_sec).ok()?.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec as u64);
            }
            message = libc::CMSG_NXTHDR(header, control);
        }
        None
    }
}

/// Sends frames, at most [`BATCH`], without blocking. Returns the number of frames sent, and the error of the next
/// frame, if any.
pub(crate) fn send(socket: BorrowedFd<'_>, frames: &[Vec<u8>]) -> (usize, Option<io::Error>) {
    let frames = &frames[..frames.len().min(BATCH)];
    if frames.is_empty() {
        return (0, None);
    }
    // SAFETY: all-zero vectors and headers are valid; the pointers in them refer to `frames`, which the kernel only
    // reads.
    unsafe {
        let mut vectors: [libc::iovec; BATCH] = zeroed();
        let mut headers: [libc::mmsghdr; BATCH] = zeroed();
        for ((vector, header), frame) in vectors.iter_mut().zip(&mut headers).zip(frames) {
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        match check(libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), frames.len() as u32, libc::MSG_DONTWAIT)) {
            // If fewer frames are sent, the next call reports the reason.
            Ok(count) => (count as usize, None),
            Err(error) => (0, Some(error)),
        }
    }
}

/// Disables an interface's transmit checksum offload (`ETHTOOL_STXCSUM`), which also disables segmentation offload. The
/// interface then sends packets as they would appear on a wire. The interface must be in the current network namespace.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn switch_transmit_checksum_offload_off(interface: &str) -> io::Result<()> {
    const ETHTOOL_STXCSUM: u32 = 0x17;
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an interface's name has at most 15 bytes"));
    }
    let mut value = Value { command: ETHTOOL_STXCSUM, data: 0 };
    // SAFETY: an all-zero request is valid; its name stays null-terminated; the kernel reads the value behind the
    // pointer only during the call. The descriptor is new and owned by this function.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = ptr::from_mut(&mut value).cast();
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, ptr::from_mut(&mut request)))?;
    }
    Ok(())
}

/// Returns the MAC address of an interface of the current network namespace.
///
/// # Errors
/// If there is no such interface.
pub(crate) fn hardware_address(interface: &str) -> io::Result<[u8; 6]> {
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an interface's name has at most 15 bytes"));
    }
    // SAFETY: an all-zero request is valid; its name stays null-terminated; the kernel fills in the address, for which
    // any bytes are valid. The descriptor is new and owned by this function.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, ptr::from_mut(&mut request)))?;
        let mut address = [0; 6];
        for (to, from) in address.iter_mut().zip(request.ifr_ifru.ifru_hwaddr.sa_data) {
            *to = from as u8;
        }
        Ok(address)
    }
}

/// TCP options that both ends have negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegotiatedOptions {
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
}

/// The state of a connection in the kernel's TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpInfo {
    pub(crate) smoothed_rtt_micros: u32,
    pub(crate) cwnd_segments: u32,
    pub(crate) ssthresh_segments: Option<u32>,
    pub(crate) in_flight_segments: u32,
    pub(crate) mss_bytes: u32,
    pub(crate) retransmitted_segments: u64,
    /// Number of times that the sender has detected reordering.
    pub(crate) reorderings_seen: u64,
    /// Pacing rate; `None` before the first one is set.
    pub(crate) pacing_bytes_per_second: Option<u64>,
    pub(crate) delivery_bytes_per_second: u64,
    /// Whether the peer has acknowledged all data, including the end of the stream.
    pub(crate) all_acknowledged: bool,
    pub(crate) negotiated: NegotiatedOptions,
}

/// Reads the state of a connection.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    // SAFETY: all-zero bytes are valid; the kernel writes at most the size of the structure (older kernels write less).
    let info = unsafe {
        let mut info: libc::tcp_info = zeroed();
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        let place = ptr::from_mut(&mut info).cast();
        check(libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut length))?;
        info
    };
    /// The kernel's slow-start threshold before the first reduction.
    const INFINITE: u32 = 0x7fff_ffff;
    /// The kernel's numbers of the states (RFC 9293 section 3.3.2) in which the sent FIN is acknowledged: FIN-WAIT-2,
    /// TIME-WAIT, CLOSED.
    const ACKNOWLEDGED: [u8; 3] = [5, 6, 7];
    /// Option bits from linux/tcp.h.
    const TIMESTAMPS: u8 = 1;
    const SACK: u8 = 2;
    const WINDOW_SCALING: u8 = 4;
    const ECN: u8 = 8;
    let has = |option: u8| info.tcpi_options & option != 0;
    // The variable `pipe` of RFC 6675, as the kernel computes it.
    let gone = info.tcpi_sacked.saturating_add(info.tcpi_lost);
    Ok(TcpInfo {
        smoothed_rtt_micros: info.tcpi_rtt,
        cwnd_segments: info.tcpi_snd_cwnd,
        ssthresh_segments: (info.tcpi_snd_ssthresh < INFINITE).then_some(info.tcpi_snd_ssthresh),
        in_flight_segments: info.tcpi_unacked.saturating_sub(gone).saturating_add(info.tcpi_retrans),
        mss_bytes: info.tcpi_snd_mss,
        retransmitted_segments: u64::from(info.tcpi_total_retrans),
        reorderings_seen: u64::from(info.tcpi_reord_seen),
        pacing_bytes_per_second: Some(info.tcpi_pacing_rate).filter(|rate| *rate != u64::MAX),
        delivery_bytes_per_second: info.tcpi_delivery_rate,
        all_acknowledged: ACKNOWLEDGED.contains(&info.tcpi_state),
        negotiated: NegotiatedOptions {
            timestamps: has(TIMESTAMPS),
            sack: has(SACK),
            window_scaling: has(WINDOW_SCALING),
            ecn: has(ECN),
        },
    })
}

/// Enables TCP pacing of a connection at the rate of its congestion control, by setting a maximum rate that the
/// connection never reaches.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn pace(socket: BorrowedFd<'_>) -> io::Result<()> {
    let most: u64 = u64::MAX - 1;
    set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &most)
}

/// Process 1 of the PID namespace that contains the children of the calling thread.
#[derive(Debug)]
pub(crate) struct InitProcess {
    process: libc::pid_t,
    /// The write end of a pipe. Process 1 polls the read end to detect whether its parent still exists.
    _alive: OwnedFd,
}

impl InitProcess {
    /// Starts process 1, which is idle until it is killed; the kernel kills it when the calling thread ends. If the
    /// kernel permits, the process mounts a new `/proc` in the mount namespace of the calling thread. It keeps the
    /// descriptor `kept` open, which the processes of its namespace can access below `/proc/1/fd`.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub(crate) fn start(kept: BorrowedFd<'_>) -> io::Result<InitProcess> {
        let kept = kept.as_raw_fd();
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // SAFETY: the child of a multithreaded process may call only async-signal-safe functions. This child only makes
        // system calls with constants, and never returns.
        unsafe {
            let process = check(libc::fork())?;
            if process == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Orphaned processes become children of process 1; their exit status is discarded.
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                libc::close(writer.as_raw_fd());
                let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                if libc::poll(&mut poll, 1, 0) != 0 {
                    // The parent ended before `PR_SET_PDEATHSIG` took effect.
                    libc::_exit(0);
                }
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, ptr::null());
                if kept > 0 {
                    libc::syscall(libc::SYS_close_range, 0, kept - 1, 0);
                }
                libc::syscall(libc::SYS_close_range, kept + 1, c_int::MAX, 0);
                loop {
                    libc::pause();
                }
            }
            Ok(InitProcess { process, _alive: writer })
        }
    }

    /// Kills process 1, and with it all processes of its namespace.
    pub(crate) fn kill(self) {
        // SAFETY: no memory is involved; the process is a child that has not been waited for, so its PID has not been
        // reused.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, ptr::null_mut(), 0);
        }
    }
}

/// Makes a program start in the foreground of the terminal, if standard input is a terminal.
pub(crate) fn start_in_foreground(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: before the program starts, the child makes only async-signal-safe system calls, which access no memory of
    // the parent.
    unsafe {
        command.pre_exec(|| {
            libc::setpgid(0, 0);
            take_terminal(libc::getpid());
            Ok(())
        });
    }
}

/// Makes this process the foreground process of the terminal again, after a program has ended.
pub(crate) fn return_to_foreground() {
    // SAFETY: no memory is involved.
    unsafe { take_terminal(libc::getpgrp()) }
}

/// Makes a process group the foreground group of the terminal at standard input. Has no effect without a terminal.
///
/// # Safety
/// There are no requirements; the function only makes system calls and changes its own signal mask temporarily.
unsafe fn take_terminal(group: libc::pid_t) {
    // SAFETY: the masks are on this stack; all other arguments are numbers.
    unsafe {
        // Without this mask, the call would stop a process in the background.
        let mut stop: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut stop);
        libc::sigaddset(&mut stop, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &stop, &mut before);
        libc::tcsetpgrp(0, group);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
    }
}
