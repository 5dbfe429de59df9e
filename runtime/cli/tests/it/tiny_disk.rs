//! A real file system with little space: tmpfs in a mount namespace of its own, which needs no rights where the kernel
//! grants user namespaces.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// Mounts, says `ready`, and gives the file system each size that is asked for.
const SCRIPT: &str = r#"
mount -t tmpfs -o size="$2" tmpfs "$1" && echo ready || exit 1
while read -r size; do mount -o remount,size="$size" "$1" && echo ready || exit 1; done
"#;

/// Lives as long as the process that holds its namespace.
pub struct TinyDisk {
    holder: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    mount_point: tempfile::TempDir,
}

impl TinyDisk {
    /// As an ordinary user or as root; says loudly on standard error, past the test harness, if neither may mount.
    pub fn new(size: &str) -> Option<Self> {
        let mut reasons = String::new();
        for arguments in [&["--user", "--map-root-user", "--mount"][..], &["--mount"]] {
            match Self::mount(arguments, size) {
                Ok(disk) => return Some(disk),
                Err(reason) => reasons += &format!("  unshare {}: {reason}\n", arguments.join(" ")),
            }
        }
        let message = format!(
            "\n**** NOT TESTED: a full disk. No small file system can be mounted here:\n{reasons}\
             **** Allow user namespaces (sysctl user.max_user_namespaces), or run as root with CAP_SYS_ADMIN.\n\n"
        );
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        None
    }

    fn mount(arguments: &[&str], size: &str) -> Result<Self, String> {
        let mount_point = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(arguments).args(["sh", "-c", SCRIPT, "sh"]).arg(mount_point.path()).arg(size);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = command.spawn().map_err(|e| e.to_string())?;
        let answers = BufReader::new(holder.stdout.take().unwrap());
        let mut disk = Self { commands: holder.stdin.take(), answers, holder, mount_point };
        if disk.is_ready() {
            return Ok(disk);
        }
        disk.commands = None;
        let mut reason = String::new();
        let errors = disk.holder.stderr.take().unwrap();
        BufReader::new(errors).lines().for_each(|line| reason += &line.unwrap());
        Err(reason)
    }

    fn is_ready(&mut self) -> bool {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer == "ready\n"
    }

    /// Where it lies, seen from outside its namespace.
    pub fn path(&self) -> PathBuf {
        let inside = self.mount_point.path().strip_prefix("/").unwrap();
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(inside)
    }

    pub fn grow(&mut self, size: &str) {
        writeln!(self.commands.as_mut().unwrap(), "{size}").unwrap();
        assert!(self.is_ready());
    }

    /// Whether there is a file on it.
    pub fn is_used(&self) -> bool {
        fs::read_dir(self.path()).unwrap().next().is_some()
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.holder.wait();
    }
}
