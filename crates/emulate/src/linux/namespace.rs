//! Namespaces that the program makes itself, without sudo, setuid or a container: user_namespaces(7),
//! network_namespaces(7), pid_namespaces(7), mount_namespaces(7).
//!
//! [`enter`] leaves for a user namespace, in which the program may configure networks; nothing of the machine's own network
//! can be changed from there. [`Home`] is the network in which the emulator's ends lie, [`HostNamespace`] that of a host. Both
//! are held by descriptors only: with the process they are gone, and their interfaces with them.
//!
//! Programs run in process and mount namespaces of their own, which belong to the thread that starts them ([`Nursery`]).
//! Process 1 there does nothing but be there: when the thread ends, however it ends, the kernel kills process 1, and with it
//! every process of the namespace. So there is nothing to clean up, and nothing that could be forgotten.
//!
//! An ordinary user's rights end at the user namespace. The superuser needs none and goes without, so that the scheduler's
//! real-time classes stay within reach.

use super::netlink::{Mac, Netlink, VethEnd, index_of};
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

/// Why this machine does not let the program have namespaces.
#[derive(Debug)]
pub struct Refused {
    /// What was tried.
    pub what: &'static str,
    /// What the kernel answered.
    pub error: io::Error,
    /// What can be done about it.
    pub advice: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.what, self.error, self.advice)
    }
}

impl std::error::Error for Refused {}

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

/// What forbids user namespaces to ordinary users here, as commands that would allow them.
pub fn forbidden_by() -> Vec<&'static str> {
    let forbids = |switch: &Switch| fs::read_to_string(switch.file).is_ok_and(|value| value.trim() == switch.forbids);
    SWITCHES.iter().filter(|switch| forbids(switch)).map(|switch| switch.allow).collect()
}

fn advice() -> String {
    match forbidden_by().as_slice() {
        [] => "in a container, start it with --privileged or a seccomp profile that allows unshare; \
               `fullpipe doctor` tells more"
            .to_owned(),
        commands => format!("as root: {}", commands.join("; ")),
    }
}

/// Leaves for a user namespace of the program's own, unless it is the superuser's anyway. To be called before the program
/// has a second thread.
///
/// # Errors
/// If the machine forbids it.
pub fn enter() -> Result<(), Refused> {
    let refused = |what| move |error| Refused { what, error, advice: advice() };
    let (user, group) = (geteuid(), getegid());
    // In a container the superuser may not be allowed what follows; then he is an ordinary user here.
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

/// The network namespace in which the emulator's ends of all hosts' interfaces are.
#[derive(Debug)]
pub struct Home {
    network: OwnedFd,
    /// The network namespace in which the program was before; `None`: it never left.
    machine: Option<OwnedFd>,
    /// Interfaces made so far. Those of hosts that are gone go a little later than they, so no name comes twice.
    interfaces: AtomicU32,
}

fn network_namespace() -> io::Result<OwnedFd> {
    Ok(open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

fn go_to(network: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
}

impl Home {
    /// Leaves for a new network namespace; after [`enter`], with the thread that will open the ports.
    ///
    /// # Errors
    /// If the machine forbids it.
    pub fn new() -> Result<Self, Refused> {
        let make = || {
            let machine = network_namespace()?;
            sys::unshare(UnshareFlags::NEWNET)?;
            Netlink::open()?.set_up(index_of("lo")?)?;
            Ok(Home { network: network_namespace()?, machine: Some(machine), interfaces: AtomicU32::new(0) })
        };
        let refused = |error| Refused { what: "a network namespace could not be made", error, advice: advice() };
        make().map_err(refused)
    }

    /// The network namespace in which the program is already: for interfaces of this machine that stand for hosts.
    ///
    /// # Errors
    /// If it cannot be held.
    pub fn here() -> io::Result<Self> {
        Ok(Home { network: network_namespace()?, machine: None, interfaces: AtomicU32::new(0) })
    }

    /// Does something with the calling thread in the network namespace that the program came from, for which it takes the
    /// rights of the superuser there: sockets that it opens are at the interfaces of this machine.
    ///
    /// # Errors
    /// The kernel's, or what `work` says.
    pub fn at_machine<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(machine) = &self.machine else { return work() };
        go_to(machine)?;
        let result = work();
        go_to(&self.network)?;
        result
    }

    /// Does something with the calling thread in a host's network namespace: sockets that it opens are the host's.
    pub(crate) fn inside<T>(&self, host: &HostNamespace, work: impl FnOnce() -> T) -> io::Result<T> {
        go_to(&host.network)?;
        let result = work();
        go_to(&self.network)?;
        Ok(result)
    }

    /// Gives settings of the kernel (files below `/proc/sys`) in a host's namespace other values where they have not got
    /// these already.
    ///
    /// # Errors
    /// The kernel's, with the setting.
    pub fn configure(&self, host: &HostNamespace, settings: &[(&str, String)]) -> io::Result<()> {
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

    /// The same namespace, to be held elsewhere too.
    pub(crate) fn clone(&self) -> io::Result<Self> {
        let machine = self.machine.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(Home { network: self.network.try_clone()?, machine, interfaces: AtomicU32::new(0) })
    }

    /// Makes the network namespace of a host, joined to this one by a pair of interfaces: `eth0` in the host, to which all
    /// goes that it sends to others than itself, and one here, whose name is returned.
    ///
    /// # Errors
    /// The kernel's.
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

    /// Makes the network namespace of a host whose `eth0` is a TUN interface; the emulator's end is the port.
    ///
    /// # Errors
    /// The kernel's.
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

    /// Makes two hosts joined by one pair of interfaces, without an emulator between them: what this machine does by itself.
    ///
    /// # Errors
    /// The kernel's.
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

/// Where programs are started: process and mount namespaces of the calling thread's own.
///
/// It cannot leave its thread.
#[derive(Debug)]
pub(crate) struct Nursery {
    home: OwnedFd,
    /// A folder with one file, the link `fullpipe` to this executable.
    own_name: OwnedFd,
    /// The file of this executable, found before `/proc` is that of the programs.
    pub(crate) executable: Option<PathBuf>,
    first: sys::First,
    of_this_thread: PhantomData<*const ()>,
}

impl Nursery {
    /// Makes them. Programs will know these names (they are in `/etc/hosts`).
    pub(crate) fn new(home: &Home, names: &[(IpAddr, String)]) -> io::Result<Self> {
        sys::unshare(UnshareFlags::NEWNS)?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let (own_name, executable) = (make_files(names)?, env::current_exe().ok());
        sys::unshare(UnshareFlags::NEWPID)?;
        let first = sys::First::start(own_name.as_fd())?;
        Ok(Nursery { home: home.network.try_clone()?, own_name, executable, first, of_this_thread: PhantomData })
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

    /// Starts a program at a host: in its network, and under its name (uts_namespaces(7)), which resolves to its address.
    pub(crate) fn spawn(&self, host: &HostNamespace, command: &mut Command) -> io::Result<Child> {
        sys::unshare(UnshareFlags::NEWUTS)?;
        let name = host.name.as_bytes();
        rustix::system::sethostname(&name[..name.len().min(MAX_HOST_NAME_BYTES)])?;
        go_to(&host.network)?;
        let child = command.spawn();
        go_to(&self.home)?;
        child
    }

    /// Kills whatever still runs.
    pub(crate) fn end(self) {
        self.first.kill();
    }
}

/// The kernel takes no longer ones (sethostname(2)).
const MAX_HOST_NAME_BYTES: usize = 64;

/// Makes names known: in the mount namespace of this thread, `/etc/hosts` has these names from now on. There are no name
/// servers, since none can be reached: a query for another name fails at once, instead of after a time-out. Returns a folder
/// with the link `fullpipe` to this executable.
fn make_files(names: &[(IpAddr, String)]) -> io::Result<OwnedFd> {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    names.iter().for_each(|(address, name)| text += &format!("{address} {name}\n"));
    // The files lie in a file system of their own that has no place in the tree: it stays while something of it is mounted.
    let place = Path::new("/tmp");
    mount("fullpipe", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None::<&std::ffi::CStr>)?;
    let put = |name: &str, text: &str, over: &str| {
        let file = place.join(name);
        fs::write(&file, text)?;
        match mount_bind(&file, over) {
            // A machine that has no such file needs none.
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
/// The same for IPv6.
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// How a host's namespace is set up.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// What its programs take for the machine's name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Ethernet address of its interface.
    pub mac: Mac,
    /// Ethernet address of the emulator's end.
    pub gateway_mac: Mac,
    /// Largest IP packet.
    pub mtu_bytes: u32,
}

/// Settings of the kernel in a host's namespace, so that runs do not depend on the distribution's taste or on earlier runs.
/// A kernel that does not have one is left alone.
const SETTINGS: [(&str, &str); 6] = [
    // No metrics of one connection are kept for the next.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // Ping as any user.
    ("net/ipv4/ping_group_range", "0 0"),
    // No router is asked for and none is believed: all is configured here.
    ("net/ipv6/conf/eth0/accept_ra", "0"),
    ("net/ipv6/conf/eth0/router_solicitations", "0"),
    ("net/ipv6/conf/eth0/dad_transmits", "0"),
    // Ports below 1024 are nobody's in particular.
    ("net/ipv4/ip_unprivileged_port_start", "0"),
];

impl HostSettings {
    /// In the namespace of the host, which has an interface `eth0`, one of Ethernet or not.
    fn apply(&self, ethernet: bool) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        netlink.set_up(index_of("lo")?)?;
        for (key, value) in SETTINGS {
            match fs::write(Path::new("/proc/sys").join(key), value) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Inside a container /proc/sys may not be writable; the defaults then hold.
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

/// The network namespace of a host. It lives as long as this does, and the programs in it.
#[derive(Debug)]
pub struct HostNamespace {
    name: String,
    network: OwnedFd,
    /// Its tables of sockets (proc_net(5)): TCP, then UDP, each for both versions of IP.
    sockets: [fs::File; 4],
}

/// States of sockets in those tables.
const LISTEN: &str = "0A";
const UNCONNECTED: &str = "07";

impl HostNamespace {
    /// That of the calling thread.
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

/// Largest table that is read: 7000 sockets.
const MAX_TABLE_BYTES: usize = 1 << 20;

/// A file of the kernel from its beginning to its end. It hands out a page at a time, whatever room there is.
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
    fn sockets_of_this_process_are_in_the_tables() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let tcp = fs::File::open("/proc/thread-self/net/tcp").expect("the table");
        let udp = fs::File::open("/proc/thread-self/net/udp").expect("the table");
        assert!(has_socket(&tcp, port, LISTEN) && !has_socket(&tcp, port, UNCONNECTED));
        assert!(has_socket(&udp, datagrams.local_addr().expect("an address").port(), UNCONNECTED));
        // The table is read anew each time.
        drop(listener);
        assert!(!has_socket(&tcp, port, LISTEN));
    }

    /// A line takes 128 bytes, a page holds 32 of them.
    #[test]
    fn tables_of_more_than_a_page_are_read_to_their_end() {
        let udp = fs::File::open("/proc/thread-self/net/udp").expect("the table");
        let sockets: Vec<_> = (0..200).map(|_| std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket")).collect();
        for socket in &sockets {
            let port = socket.local_addr().expect("an address").port();
            assert!(has_socket(&udp, port, UNCONNECTED), "port {port}");
        }
    }
}
