//! Namespaces that Fullpipe creates itself, without sudo, setuid or a container: user_namespaces(7),
//! network_namespaces(7), pid_namespaces(7), mount_namespaces(7).
//!
//! [`enter_user_namespace`] moves the process to a user namespace in which it may configure networks. The machine's own
//! network cannot be changed from there. [`EmulatorNamespace`] is the network namespace of the emulator's ends of all
//! interfaces; [`HostNamespace`] is that of a host. Only file descriptors refer to these namespaces, so the namespaces
//! and their interfaces disappear with the process.
//!
//! Programs run in separate PID and mount namespaces, which belong to the thread that starts the programs
//! ([`ProgramNamespaces`]). Process 1 of the PID namespace is idle. When the thread ends for any reason, the kernel
//! kills process 1 and with it every process of the namespace. Therefore no cleanup is needed.
//!
//! For an ordinary user, the capabilities are limited to the user namespace. The user keeps the user ID there. Programs
//! inherit the capabilities as ambient ones (capabilities(7)), so that they can use raw sockets and configure the network
//! of their host. For the superuser, no user namespace is
//! needed or created, so that the real-time scheduling policies remain available.

use super::netlink::{MacAddress, Netlink, VethEnd, index_of};
use super::port::TunPort;
use super::sys;
use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySets, LinkNameSpaceType, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    move_into_link_name_space, set_capabilities,
};
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

/// The reason why Fullpipe cannot create namespaces on this machine.
#[derive(Debug)]
pub struct NamespaceError {
    /// The operation that failed.
    pub what: &'static str,
    /// The kernel's error.
    pub error: io::Error,
    /// How to permit namespaces on this machine.
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

/// Returns commands that permit user namespaces to ordinary users, one for each setting that currently forbids such
/// namespaces.
pub fn namespace_restrictions() -> Vec<&'static str> {
    let forbids = |switch: &Switch| fs::read_to_string(switch.file).is_ok_and(|value| value.trim() == switch.forbids);
    SWITCHES.iter().filter(|switch| forbids(switch)).map(|switch| switch.allow).collect()
}

fn advice() -> String {
    match namespace_restrictions().as_slice() {
        [] => "in a container, start the container with --privileged or with a seccomp profile that permits unshare; \
               `fullpipe doctor` prints all requirements"
            .to_owned(),
        commands => format!("to permit it, run as root: {}", commands.join("; ")),
    }
}

/// Enters a new user namespace, unless the user is the superuser. Must be called before the process has a second
/// thread.
///
/// # Errors
/// If the machine forbids namespaces.
pub fn enter_user_namespace() -> Result<(), NamespaceError> {
    let refused = |what| move |error| NamespaceError { what, error, advice: advice() };
    let (user, group) = (geteuid(), getegid());
    // In a container, the superuser may lack the required capabilities and is then treated as an ordinary user.
    if user.is_root() && sys::unshare(UnshareFlags::NEWNS).is_ok() {
        return Ok(());
    }
    sys::unshare(UnshareFlags::NEWUSER).map_err(refused("cannot create a user namespace"))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(refused("cannot map the user into the new user namespace"))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("{0} {0} 1", user.as_raw()))?;
    map("gid_map", format!("{0} {0} 1", group.as_raw()))?;
    make_capabilities_ambient().map_err(refused("cannot pass capabilities to programs"))
}

/// Makes all capabilities of the calling thread ambient: a program of a user other than the superuser keeps only these.
fn make_capabilities_ambient() -> io::Result<()> {
    let own = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: own.permitted, ..own })?;
    for capability in own.permitted.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// The network namespace that contains the emulator's ends of all hosts' interfaces.
#[derive(Debug)]
pub struct EmulatorNamespace {
    network: OwnedFd,
    /// The previous network namespace of the process; `None` if it has not changed.
    machine: Option<OwnedFd>,
    /// Number of interfaces created so far. Names are never reused, because interfaces disappear slightly later than
    /// their hosts.
    interfaces: AtomicU32,
}

fn network_namespace() -> io::Result<OwnedFd> {
    Ok(open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

fn go_to(network: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
}

impl EmulatorNamespace {
    /// Enters a new network namespace. Must be called after [`enter_user_namespace`], in the thread that will open the
    /// ports.
    ///
    /// # Errors
    /// If the machine forbids namespaces.
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
        let refused = |error| NamespaceError { what: "cannot create a network namespace", error, advice: advice() };
        make().map_err(refused)
    }

    /// Returns the current network namespace, for hosts that are connected to interfaces of this machine.
    ///
    /// # Errors
    /// If the namespace cannot be opened.
    pub fn current() -> io::Result<Self> {
        Ok(EmulatorNamespace { network: network_namespace()?, machine: None, interfaces: AtomicU32::new(0) })
    }

    /// Runs `work` on the calling thread in the network namespace that the process used before
    /// [`EmulatorNamespace::new`]. This requires superuser rights in that namespace. Sockets that `work` opens belong
    /// to the network of that namespace.
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

    /// Runs `work` on the calling thread in a host's network namespace. Sockets that `work` opens belong to the host.
    pub(crate) fn inside<T>(&self, host: &HostNamespace, work: impl FnOnce() -> T) -> io::Result<T> {
        go_to(&host.network)?;
        let result = work();
        go_to(&self.network)?;
        Ok(result)
    }

    /// Sets kernel settings (files below `/proc/sys`) in a host's namespace, unless they already have these values.
    ///
    /// # Errors
    /// Returns the kernel's error, with the name of the setting.
    pub fn configure_host(&self, host: &HostNamespace, settings: &[(&str, String)]) -> io::Result<()> {
        let set = |(key, value): &(&str, String)| {
            let file = Path::new("/proc/sys").join(key);
            let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
            if fs::read_to_string(&file).is_ok_and(|now| words(now) == *value) {
                return Ok(());
            }
            let told = |error: io::Error| io::Error::new(error.kind(), format!("cannot set {key} = {value}: {error}"));
            fs::write(&file, value).map_err(told)
        };
        self.inside(host, || settings.iter().try_for_each(set))?
    }

    /// Returns a second reference to the same namespace.
    pub(crate) fn clone(&self) -> io::Result<Self> {
        let machine = self.machine.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(EmulatorNamespace { network: self.network.try_clone()?, machine, interfaces: AtomicU32::new(0) })
    }

    /// Creates the network namespace of a host and connects it to this one by a veth pair. The host's interface `eth0`
    /// carries all its traffic to other hosts. Also returns the name of the interface at the other end of the pair,
    /// which is in this namespace.
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

    /// Creates the network namespace of a host whose `eth0` is a TUN interface. Also returns the port through which the
    /// emulator exchanges packets with this interface.
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

    /// Creates two hosts that are connected directly by a veth pair, without the emulator, as a baseline for
    /// measurements of this machine.
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

/// The PID and mount namespaces of the calling thread, in which programs are started.
///
/// The type is not `Send`, because the namespaces belong to the thread.
#[derive(Debug)]
pub(crate) struct ProgramNamespaces {
    home: OwnedFd,
    /// A directory that contains only the symbolic link `fullpipe` to this executable.
    own_name: OwnedFd,
    /// The path of this executable, determined before `/proc` is replaced by that of the programs.
    pub(crate) executable: Option<PathBuf>,
    first: sys::InitProcess,
    of_this_thread: PhantomData<*const ()>,
}

impl ProgramNamespaces {
    /// Creates the namespaces. Programs can resolve `names` through `/etc/hosts`.
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

    /// Returns the directories in which programs are searched. The first one contains a link named `fullpipe` to this
    /// executable, regardless of the executable's file name. The executable's own directory and the `PATH` of the
    /// environment follow.
    pub(crate) fn search_path(&self) -> OsString {
        // In the `/proc` of the programs, or in that of this process if the kernel does not permit another mount.
        let by_descriptor =
            [1, std::process::id()].map(|process| format!("/proc/{process}/fd/{}", self.own_name.as_raw_fd()));
        let own_folder = self.executable.as_ref().and_then(|own| Some(own.parent()?.to_owned()));
        let others = env::var_os("PATH").unwrap_or_default();
        let folders = by_descriptor.into_iter().map(PathBuf::from).chain(own_folder).chain(env::split_paths(&others));
        // A directory with a colon in its name cannot be part of `PATH`.
        env::join_paths(folders).unwrap_or(others)
    }

    /// Starts a program at a host, in the host's network namespace and with its host name (uts_namespaces(7)), which
    /// resolves to its address.
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

/// Maximum length of a host name in the kernel (sethostname(2)).
const MAX_HOST_NAME_BYTES: usize = 64;

/// Replaces `/etc/hosts` in the mount namespace of this thread by a file with these names. Also replaces
/// `/etc/resolv.conf` by an empty file, because no name server is reachable. A query for another name then fails
/// immediately instead of after a timeout. Returns a directory with the symbolic link `fullpipe` to this executable.
fn make_files(names: &[(IpAddr, String)]) -> io::Result<OwnedFd> {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    names.iter().for_each(|(address, name)| text += &format!("{address} {name}\n"));
    // The files are in a separate, detached file system, which exists while one of its files is mounted or open.
    let place = Path::new("/tmp");
    mount("fullpipe", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None::<&std::ffi::CStr>)?;
    let put = |name: &str, text: &str, over: &str| {
        let file = place.join(name);
        fs::write(&file, text)?;
        match mount_bind(&file, over) {
            // On a machine without this file, no replacement is needed.
            Err(rustix::io::Errno::NOENT) => Ok(()),
            other => Ok(other?),
        }
    };
    let put = put("hosts", &text, "/etc/hosts").and_then(|()| put("resolv.conf", "", "/etc/resolv.conf"));
    let own_name = put.and_then(|()| own_name(&place.join("bin")));
    unmount(place, UnmountFlags::DETACH)?;
    own_name
}

/// Creates a directory with the symbolic link `fullpipe` to this executable.
fn own_name(folder: &Path) -> io::Result<OwnedFd> {
    fs::create_dir(folder)?;
    symlink(env::current_exe()?, folder.join(OWN_NAME))?;
    Ok(open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The name by which programs of a scenario start this executable.
pub(crate) const OWN_NAME: &str = "fullpipe";

/// The IPv4 gateway of all hosts, regardless of their addresses. It is link-local, so that no host has the same
/// address.
const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// The IPv6 gateway of all hosts.
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// Settings of a host's namespace.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Host name that programs on the host read from the kernel.
    pub name: String,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// MAC address of the host's interface.
    pub mac: MacAddress,
    /// MAC address of the emulator's end of the interface pair.
    pub gateway_mac: MacAddress,
    /// Maximum size of an IP packet in bytes.
    pub mtu_bytes: u32,
}

/// Kernel settings in a host's namespace, which make runs independent of the distribution's defaults and of earlier
/// runs. Settings that the kernel does not have are skipped.
const SETTINGS: [(&str, &str); 6] = [
    // Metrics of one connection are not saved for the next one.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // All users may ping.
    ("net/ipv4/ping_group_range", "0 0"),
    // No router solicitations are sent, and router advertisements are ignored, because all settings are configured
    // here.
    ("net/ipv6/conf/eth0/accept_ra", "0"),
    ("net/ipv6/conf/eth0/router_solicitations", "0"),
    ("net/ipv6/conf/eth0/dad_transmits", "0"),
    // All users may bind ports below 1024.
    ("net/ipv4/ip_unprivileged_port_start", "0"),
];

impl HostSettings {
    /// Applies the settings in the namespace of the host; `ethernet` states whether the interface `eth0` has Ethernet
    /// headers.
    fn apply(&self, ethernet: bool) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        netlink.set_up(index_of("lo")?)?;
        for (key, value) in SETTINGS {
            match fs::write(Path::new("/proc/sys").join(key), value) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // In a container, `/proc/sys` may be read-only; the defaults then apply.
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

/// The network namespace of a host. It exists as long as this value or a program in the namespace exists.
#[derive(Debug)]
pub struct HostNamespace {
    name: String,
    network: OwnedFd,
    /// The host's socket tables (proc_net(5)): TCP, then UDP, each for both IP versions.
    sockets: [fs::File; 4],
}

/// Socket states in these tables.
const LISTEN: &str = "0A";
const UNCONNECTED: &str = "07";

impl HostNamespace {
    /// Returns the network namespace of the calling thread.
    fn here(name: &str, network: OwnedFd) -> io::Result<Self> {
        let table = |name: &str| fs::File::open(Path::new("/proc/thread-self/net").join(name));
        let sockets = [table("tcp")?, table("tcp6")?, table("udp")?, table("udp6")?];
        Ok(HostNamespace { name: name.to_owned(), network, sockets })
    }

    /// Returns whether a TCP socket listens on this port.
    pub(crate) fn listens(&self, port: u16) -> bool {
        self.sockets[..2].iter().any(|table| has_socket(table, port, LISTEN))
    }

    /// Returns whether a UDP socket is bound to this port.
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

/// Maximum number of bytes read from a table, which is sufficient for 7000 sockets.
const MAX_TABLE_BYTES: usize = 1 << 20;

/// Reads a kernel file completely. The kernel returns at most one page per read, regardless of the buffer size.
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
