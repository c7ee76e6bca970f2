//! Namespaces that the program creates itself, without sudo, setuid or a container: user_namespaces(7),
//! network_namespaces(7), pid_namespaces(7), mount_namespaces(7).
//!
//! [`enter_user_namespace`] moves the program to a user namespace in which it may configure networks. The machine's own network cannot
//! be changed from there. [`EmulatorNamespace`] is the network namespace of the emulator's ends, [`HostNamespace`] that of a host.
//! Only file descriptors refer to both, so they and their interfaces disappear with the process.
//!
//! Programs run in separate process and mount namespaces, which belong to the thread that starts them ([`ProgramNamespaces`]).
//! Process 1 there does nothing. When the thread ends for any reason, the kernel kills process 1 and with it every
//! process of the namespace. So no cleanup is needed.
//!
//! The rights of an ordinary user are limited to the user namespace. The superuser needs no user namespace and uses
//! none, so that the real-time scheduling classes remain available.

use super::netlink::{MacAddress, Netlink, VethEnd, index_of};
use super::port::TunPort;
use super::sys;
use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// Reason why the program cannot create namespaces on this machine.
#[derive(Debug)]
pub struct NamespaceError {
    /// The operation that failed.
    pub what: &'static str,
    /// Returns the kernel's error.
    pub error: io::Error,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.what, self.error, self.advice)
    }
}

impl std::error::Error for NamespaceError {}

/// A setting of the kernel or of a distribution that can forbid user namespaces.
struct Switch {
    file: &'static str,
    forbids: &'static str,
    allow: &'static str,
}

const SWITCHES: [Switch; 3] = [
    Switch {
        file: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        forbids: "1",
        allow: "sysctl kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile for fullpipe that has \
                `userns,`)",
    },
    Switch {
        file: "/proc/sys/kernel/unprivileged_userns_clone",
        forbids: "0",
        allow: "sysctl kernel.unprivileged_userns_clone=1",
    },
    Switch { file: "/proc/sys/user/max_user_namespaces", forbids: "0", allow: "sysctl user.max_user_namespaces=10000" },
];

/// The settings that forbid user namespaces to ordinary users, as commands that would permit them.
pub fn namespace_restrictions() -> Vec<&'static str> {
    let forbids = |switch: &Switch| fs::read_to_string(switch.file).is_ok_and(|value| value.trim() == switch.forbids);
    SWITCHES.iter().filter(|switch| forbids(switch)).map(|switch| switch.allow).collect()
}

fn advice() -> String {
    match namespace_restrictions().as_slice() {
        [] => "in a container, start it with --privileged or a seccomp profile that allows unshare; \
               `fullpipe doctor` tells more"
            .to_owned(),
        commands => format!("as root: {}", commands.join("; ")),
    }
}

/// Enters a new user namespace, unless the user is the superuser. It must be called before the program has a second
/// thread.
///
/// # Errors
/// If the machine forbids it.
pub fn enter_user_namespace() -> Result<(), NamespaceError> {
    let refused = |what| move |error| NamespaceError { what, error, advice: advice() };
    let (user, group) = (geteuid(), getegid());
    // In a container the superuser may lack the required rights and is then treated as an ordinary user.
    if user.is_root() && sys::unshare(UnshareFlags::NEWNS).is_ok() {
        return Ok(());
    }
    sys::unshare(UnshareFlags::NEWUSER).map_err(refused("a user namespace could not be made"))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(refused("a user could not be mapped"))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {} 1", user.as_raw()))?;
    map("gid_map", format!("0 {} 1", group.as_raw()))
}

/// The network namespace that contains the emulator's ends of all hosts' interfaces.
#[derive(Debug)]
pub struct EmulatorNamespace {
    network: OwnedFd,
    /// The program's previous network namespace; `None` if it has not changed.
    machine: Option<OwnedFd>,
    /// Number of interfaces created so far. Interfaces disappear slightly later than their hosts, so names are never
    /// reused.
    interfaces: AtomicU32,
}

fn network_namespace() -> io::Result<OwnedFd> {
    Ok(open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

fn go_to(network: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
}

impl EmulatorNamespace {
    /// Enters a new network namespace. It must be called after [`enter_user_namespace`], in the thread that will open the ports.
    ///
    /// # Errors
    /// If the machine forbids it.
    pub fn new() -> Result<Self, NamespaceError> {
        let make = || {
            let machine = network_namespace()?;
            sys::unshare(UnshareFlags::NEWNET)?;
            Netlink::open()?.set_up(index_of("lo")?)?;
            Ok(EmulatorNamespace {
                network: network_namespace()?,
                machine: Some(machine),
                interfaces: AtomicU32::new(0),
            })
        };
        let refused = |error| NamespaceError { what: "a network namespace could not be made", error, advice: advice() };
        make().map_err(refused)
    }

    /// Uses the current network namespace, for interfaces of this machine that represent hosts.
    ///
    /// # Errors
    /// If the namespace cannot be opened.
    pub fn current() -> io::Result<Self> {
        Ok(EmulatorNamespace { network: network_namespace()?, machine: None, interfaces: AtomicU32::new(0) })
    }

    /// Runs `work` on the calling thread in the program's previous network namespace. This needs superuser rights
    /// there. Sockets that `work` opens belong to this machine's interfaces.
    ///
    /// # Errors
    /// Returns the kernel's error, or that of `work`.
    pub fn run_in_original_namespace<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(machine) = &self.machine else { return work() };
        go_to(machine)?;
        let result = work();
        go_to(&self.network)?;
        result
    }

    /// Runs `work` on the calling thread in a host's network namespace. Sockets that it opens belong to the host.
    pub(crate) fn inside<T>(&self, host: &HostNamespace, work: impl FnOnce() -> T) -> io::Result<T> {
        go_to(&host.network)?;
        let result = work();
        go_to(&self.network)?;
        Ok(result)
    }

    /// Sets kernel settings (files below `/proc/sys`) in a host's namespace, unless they already have these values.
    ///
    /// # Errors
    /// Returns the kernel's error, with the setting.
    pub fn configure_host(&self, host: &HostNamespace, settings: &[(&str, String)]) -> io::Result<()> {
        let set = |(key, value): &(&str, String)| {
            let file = Path::new("/proc/sys").join(key);
            let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
            if fs::read_to_string(&file).is_ok_and(|now| words(now) == *value) {
                return Ok(());
            }
            let told = |error: io::Error| io::Error::new(error.kind(), format!("{key} = {value}: {error}"));
            fs::write(&file, value).map_err(told)
        };
        self.inside(host, || settings.iter().try_for_each(set))?
    }

    /// A second reference to the same namespace.
    pub(crate) fn clone(&self) -> io::Result<Self> {
        let machine = self.machine.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(EmulatorNamespace { network: self.network.try_clone()?, machine, interfaces: AtomicU32::new(0) })
    }

    /// Creates the network namespace of a host and connects it to this one by a pair of interfaces. The host's
    /// interface `eth0` carries all its traffic to other hosts. The other end is in this namespace, and its name is
    /// returned.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn add_host(&self, settings: &HostSettings) -> io::Result<(HostNamespace, String)> {
        let outer = format!("fp{}", self.interfaces.fetch_add(1, Ordering::Relaxed));
        let mut here = Netlink::open()?;
        sys::unshare(UnshareFlags::NEWNET)?;
        let made = network_namespace().and_then(|network| {
            here.add_veth(
                &VethEnd { name: &outer, mac: settings.gateway_mac, mtu_bytes: settings.mtu_bytes },
                &VethEnd { name: "eth0", mac: settings.mac, mtu_bytes: settings.mtu_bytes },
                network.as_fd(),
            )?;
            settings.apply(true)?;
            HostNamespace::here(&settings.name, network)
        });
        go_to(&self.network)?;
        let host = made?;
        here.set_up(index_of(&outer)?)?;
        Ok((host, outer))
    }

    /// Creates the network namespace of a host whose `eth0` is a TUN interface, and the port that is its other end.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn add_tun_host(&self, settings: &HostSettings) -> io::Result<(HostNamespace, TunPort)> {
        sys::unshare(UnshareFlags::NEWNET)?;
        let made = network_namespace().and_then(|network| {
            let device = sys::tun("eth0")?;
            settings.apply(false)?;
            Ok((
                HostNamespace::here(&settings.name, network)?,
                TunPort::new(device, settings.mac, settings.gateway_mac),
            ))
        });
        go_to(&self.network)?;
        made
    }

    /// Creates two hosts connected by a pair of interfaces, without an emulator: a baseline for measurements of this
    /// machine.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn add_pair(&self, settings: [&HostSettings; 2]) -> io::Result<[HostNamespace; 2]> {
        let end =
            |number: usize| VethEnd { name: "eth0", mac: settings[number].mac, mtu_bytes: settings[number].mtu_bytes };
        let make = || {
            sys::unshare(UnshareFlags::NEWNET)?;
            let second = network_namespace()?;
            sys::unshare(UnshareFlags::NEWNET)?;
            Netlink::open()?.add_veth(&end(0), &end(1), second.as_fd())?;
            settings[0].apply(true)?;
            let first = HostNamespace::here("first", network_namespace()?)?;
            go_to(&second)?;
            settings[1].apply(true)?;
            Ok([first, HostNamespace::here("second", second)?])
        };
        let made = make();
        go_to(&self.network)?;
        made
    }
}

/// Process and mount namespaces of the calling thread, in which programs are started.
///
/// The value cannot leave its thread.
#[derive(Debug)]
pub(crate) struct ProgramNamespaces {
    home: OwnedFd,
    /// A folder with one file, the link `fullpipe` to this executable.
    own_name: OwnedFd,
    /// The file of this executable, found before `/proc` is that of the programs.
    pub(crate) executable: Option<PathBuf>,
    first: sys::InitProcess,
    of_this_thread: PhantomData<*const ()>,
}

impl ProgramNamespaces {
    /// Creates the namespaces. Programs can resolve these names through `/etc/hosts`.
    pub(crate) fn new(home: &EmulatorNamespace, names: &[(IpAddr, String)]) -> io::Result<Self> {
        sys::unshare(UnshareFlags::NEWNS)?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let (own_name, executable) = (make_files(names)?, env::current_exe().ok());
        sys::unshare(UnshareFlags::NEWPID)?;
        let first = sys::InitProcess::start(own_name.as_fd())?;
        Ok(ProgramNamespaces {
            home: home.network.try_clone()?,
            own_name,
            executable,
            first,
            of_this_thread: PhantomData,
        })
    }

    /// The folders in which programs are searched: first one in which `fullpipe` is this executable, whatever its file is
    /// called, then the executable's own, then those of the environment.
    pub(crate) fn search_path(&self) -> OsString {
        // In `/proc` of the programs, or in that of this process where the kernel allows no other.
        let by_descriptor =
            [1, std::process::id()].map(|process| format!("/proc/{process}/fd/{}", self.own_name.as_raw_fd()));
        let own_folder = self.executable.as_ref().and_then(|own| Some(own.parent()?.to_owned()));
        let others = env::var_os("PATH").unwrap_or_default();
        let folders = by_descriptor.into_iter().map(PathBuf::from).chain(own_folder).chain(env::split_paths(&others));
        // A folder with a colon in its name cannot be in a path.
        env::join_paths(folders).unwrap_or(others)
    }

    /// Starts a program at a host: in its network namespace and with its host name (uts_namespaces(7)), which resolves
    /// to its address.
    pub(crate) fn spawn(&self, host: &HostNamespace, command: &mut Command) -> io::Result<Child> {
        sys::unshare(UnshareFlags::NEWUTS)?;
        let name = host.name.as_bytes();
        rustix::system::sethostname(&name[..name.len().min(MAX_HOST_NAME_BYTES)])?;
        go_to(&host.network)?;
        let child = command.spawn();
        go_to(&self.home)?;
        child
    }

    /// Kills all remaining processes.
    pub(crate) fn end(self) {
        self.first.kill();
    }
}

/// The kernel's limit (sethostname(2)).
const MAX_HOST_NAME_BYTES: usize = 64;

/// Makes names known: in the mount namespace of this thread, `/etc/hosts` has these names from now on. There are no name
/// servers, since none can be reached: a query for another name fails at once, instead of after a time-out. Returns a folder
/// with the link `fullpipe` to this executable.
fn make_files(names: &[(IpAddr, String)]) -> io::Result<OwnedFd> {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    names.iter().for_each(|(address, name)| text += &format!("{address} {name}\n"));
    // The files are in a separate, detached file system, which exists while a file of it is mounted.
    let place = Path::new("/tmp");
    mount("fullpipe", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None::<&std::ffi::CStr>)?;
    let put = |name: &str, text: &str, over: &str| {
        let file = place.join(name);
        fs::write(&file, text)?;
        match mount_bind(&file, over) {
            // A machine without this file needs no replacement.
            Err(rustix::io::Errno::NOENT) => Ok(()),
            other => Ok(other?),
        }
    };
    let put = put("hosts", &text, "/etc/hosts").and_then(|()| put("resolv.conf", "", "/etc/resolv.conf"));
    let own_name = put.and_then(|()| own_name(&place.join("bin")));
    unmount(place, UnmountFlags::DETACH)?;
    own_name
}

/// Makes a folder with the link `fullpipe` to this executable.
fn own_name(folder: &Path) -> io::Result<OwnedFd> {
    fs::create_dir(folder)?;
    symlink(env::current_exe()?, folder.join(OWN_NAME))?;
    Ok(open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The name by which programs of a scenario start this executable.
pub(crate) const OWN_NAME: &str = "fullpipe";

/// The gateway that hosts send everything to, whatever their addresses: link-local, so that it is nobody else's.
const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// The IPv6 gateway.
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// Settings of a host's namespace.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Host name that its programs see.
    pub name: String,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// MAC address of its interface.
    pub mac: MacAddress,
    /// MAC address of the emulator's end.
    pub gateway_mac: MacAddress,
    /// Maximum size of an IP packet in bytes.
    pub mtu_bytes: u32,
}

/// Kernel settings in a host's namespace, so that runs do not depend on the distribution's defaults or on earlier runs.
/// Settings that the kernel does not have are skipped.
const SETTINGS: [(&str, &str); 6] = [
    // Metrics of one connection are not saved for the next.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // All users may ping.
    ("net/ipv4/ping_group_range", "0 0"),
    // No router solicitations, and router advertisements are ignored: all settings are made here.
    ("net/ipv6/conf/eth0/accept_ra", "0"),
    ("net/ipv6/conf/eth0/router_solicitations", "0"),
    ("net/ipv6/conf/eth0/dad_transmits", "0"),
    // All users may bind ports below 1024.
    ("net/ipv4/ip_unprivileged_port_start", "0"),
];

impl HostSettings {
    /// Applies the settings in the namespace of the host, which has an interface `eth0`, with or without Ethernet.
    fn apply(&self, ethernet: bool) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        netlink.set_up(index_of("lo")?)?;
        for (key, value) in SETTINGS {
            match fs::write(Path::new("/proc/sys").join(key), value) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // In a container, /proc/sys may be read-only; the defaults then apply.
                Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                other => other?,
            }
        }
        let interface = index_of("eth0")?;
        if ethernet {
            sys::switch_transmit_checksum_offload_off("eth0")?;
        } else {
            netlink.set_mtu(interface, self.mtu_bytes)?;
        }
        netlink.set_up(interface)?;
        for address in &self.addresses {
            netlink.add_address(interface, *address, if address.is_ipv4() { 32 } else { 128 })?;
        }
        for gateway in [IpAddr::V4(GATEWAY_V4), IpAddr::V6(GATEWAY_V6)] {
            if self.addresses.iter().any(|address| address.is_ipv4() == gateway.is_ipv4()) {
                if ethernet {
                    netlink.add_neighbour(interface, gateway, self.gateway_mac)?;
                }
                netlink.add_default_route(interface, gateway)?;
            }
        }
        Ok(())
    }
}

/// The network namespace of a host. It exists as long as this value or a program in it.
#[derive(Debug)]
pub struct HostNamespace {
    name: String,
    network: OwnedFd,
    /// The host's socket tables (proc_net(5)): TCP, then UDP, each for both IP versions.
    sockets: [fs::File; 4],
}

/// Socket states in those tables.
const LISTEN: &str = "0A";
const UNCONNECTED: &str = "07";

impl HostNamespace {
    /// The network namespace of the calling thread.
    fn here(name: &str, network: OwnedFd) -> io::Result<Self> {
        let table = |name: &str| fs::File::open(Path::new("/proc/thread-self/net").join(name));
        let sockets = [table("tcp")?, table("tcp6")?, table("udp")?, table("udp6")?];
        Ok(HostNamespace { name: name.to_owned(), network, sockets })
    }

    /// Whether a TCP socket listens on this port.
    pub(crate) fn listens(&self, port: u16) -> bool {
        self.sockets[..2].iter().any(|table| has_socket(table, port, LISTEN))
    }

    /// Whether a UDP socket is bound to this port.
    pub(crate) fn has_udp_socket(&self, port: u16) -> bool {
        self.sockets[2..].iter().any(|table| has_socket(table, port, UNCONNECTED))
    }
}

fn has_socket(table: &fs::File, port: u16, state: &str) -> bool {
    let text = whole(table);
    let local = format!(":{port:04X}");
    text.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|address| address.ends_with(&local)) && words.nth(1) == Some(state)
    })
}

/// Maximum number of bytes read from a table: 7000 sockets.
const MAX_TABLE_BYTES: usize = 1 << 20;

/// Reads a kernel file completely. The kernel returns at most a page per read, regardless of the buffer size.
fn whole(file: &fs::File) -> String {
    let mut bytes = Vec::new();
    let mut page = [0; 4096];
    while bytes.len() < MAX_TABLE_BYTES
        && let Ok(read @ 1..) = file.read_at(&mut page, bytes.len() as u64)
    {
        bytes.extend(&page[..read]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_sockets_are_found_in_the_tables() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a TCP socket can be bound");
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a UDP socket can be bound");
        let port = listener.local_addr().expect("the socket has an address").port();
        let tcp = fs::File::open("/proc/thread-self/net/tcp").expect("the table can be opened");
        let udp = fs::File::open("/proc/thread-self/net/udp").expect("the table can be opened");
        assert!(has_socket(&tcp, port, LISTEN) && !has_socket(&tcp, port, UNCONNECTED));
        assert!(has_socket(&udp, datagrams.local_addr().expect("the socket has an address").port(), UNCONNECTED));
        // The table is read again on each call.
        drop(listener);
        assert!(!has_socket(&tcp, port, LISTEN));
    }

    /// A line takes 128 bytes; a page holds 32 of them.
    #[test]
    fn table_of_more_than_a_page_is_read_completely() {
        let udp = fs::File::open("/proc/thread-self/net/udp").expect("the table can be opened");
        let sockets: Vec<_> =
            (0..200).map(|_| std::net::UdpSocket::bind("127.0.0.1:0").expect("a UDP socket can be bound")).collect();
        for socket in &sockets {
            let port = socket.local_addr().expect("the socket has an address").port();
            assert!(has_socket(&udp, port, UNCONNECTED), "port {port}");
        }
    }
}
