//! Network namespaces of Linux, one for each process of a test, joined by a bridge: a process that is cut off lives on and
//! reaches its storage, but nobody answers it and nobody is told. Needs root and `ip`.

use std::process::{Command, Stdio};

/// Removed when dropped.
pub struct Namespaces {
    /// Prefix of all names.
    name: String,
    /// The first three bytes of every address.
    subnet: String,
    count: usize,
}

impl Namespaces {
    /// `None` where the machine does not let us.
    pub fn new(count: usize) -> Option<Self> {
        let id = std::process::id();
        let network =
            Self { name: format!("sk{id}"), subnet: format!("10.{}.{}", 200 + id % 50, id / 50 % 250), count };
        // What was made until something failed is removed by `drop`.
        network.make().then_some(network)
    }

    pub fn address(&self, index: usize) -> String {
        format!("{}.{}", self.subnet, index + 2)
    }

    /// The beginning of a command that runs in the namespace, in the process that is started.
    pub fn command(&self, index: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(index), program]);
        command
    }

    pub fn cut_off(&self, index: usize) {
        assert!(ip(&format!("link set {} down", self.port(index))), "cutting a namespace off");
    }

    pub fn join(&self, index: usize) {
        assert!(ip(&format!("link set {} up", self.port(index))), "joining a namespace");
    }

    fn make(&self) -> bool {
        let bridge = &self.name;
        ip(&format!("link add {bridge} type bridge"))
            && ip(&format!("addr add {}.1/24 dev {bridge}", self.subnet))
            && ip(&format!("link set {bridge} up"))
            && (0..self.count).all(|index| {
                let (namespace, port) = (self.namespace(index), self.port(index));
                ip(&format!("netns add {namespace}"))
                    && ip(&format!("link add {port} type veth peer name eth0 netns {namespace}"))
                    && ip(&format!("link set {port} master {bridge} up"))
                    && ip(&format!("-n {namespace} addr add {}/24 dev eth0", self.address(index)))
                    && ip(&format!("-n {namespace} link set eth0 up"))
                    && ip(&format!("-n {namespace} link set lo up"))
            })
    }

    fn namespace(&self, index: usize) -> String {
        format!("{}n{index}", self.name)
    }

    /// The end of its cable at the bridge.
    fn port(&self, index: usize) -> String {
        format!("{}p{index}", self.name)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for index in 0..self.count {
            // Some may never have been made.
            ip(&format!("link del {}", self.port(index)));
            ip(&format!("netns del {}", self.namespace(index)));
        }
        ip(&format!("link del {}", self.name));
    }
}

fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
