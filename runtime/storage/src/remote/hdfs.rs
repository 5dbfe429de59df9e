//! HDFS through its native protocol.
//!
//! A write goes to a temporary file of a random name, which is then renamed: HDFS renames atomically, and onto an
//! existing file only if told to. When the answer of a rename is lost, deleting the temporary file decides: if it was
//! there, the rename had not happened and cannot happen any more; if not, it had.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions, client::FileStatus};
use parking_lot::RwLock;
use streamkeeper_types::{Code, Error, Result};
use tokio::runtime::Handle;

use super::{
    address::Address,
    content::{Content, Sink},
    failure::{Failure, short},
    tries::{Tries, repeat},
};
use crate::{Environment, ObjectMeta, PutMode, PutOutcome, StorageOptions, memory::out_of_range, path};

/// Folder of files that are not complete; hidden, so that no object path names it.
const TEMPORARY: &str = ".tmp";

/// Bytes that are handed to HDFS at a time.
const STEP: u64 = 4 << 20;

/// Attempts to enter a folder that a concurrent delete removes as empty.
const FOLDER_ATTEMPTS: usize = 8;

const FOLDER_MODE: u32 = 0o755;

/// Java's names of errors for which the caller's rights or quota are to blame.
const LASTING: [&str; 6] = [
    "AccessControlException",
    "AuthorizationException",
    "DSQuotaExceededException",
    "NSQuotaExceededException",
    "ParentNotDirectoryException",
    "SaslException",
];

/// Files below one folder of HDFS.
pub(super) struct Hdfs {
    /// Replaced when calls get no answer: a connection whose other end is gone would swallow all later ones.
    client: RwLock<Client>,
    settings: Settings,
    root: String,
    options: StorageOptions,
}

/// What a client is made from.
struct Settings {
    url: String,
    config_dir: Option<String>,
    user: Option<String>,
    runtime: Handle,
}

impl fmt::Debug for Hdfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hdfs").field("url", &self.settings.url).field("root", &self.root).finish_non_exhaustive()
    }
}

impl Settings {
    fn client(&self) -> Result<Client> {
        let mut builder = ClientBuilder::new().with_url(&self.url).with_io_runtime(self.runtime.clone());
        if let Some(folder) = &self.config_dir {
            builder = builder.with_config_dir(folder);
        }
        if let Some(user) = &self.user {
            builder = builder.with_user(user);
        }
        builder.build().map_err(|error| {
            Error::new(Code::OptionInvalid, format!("{}: {}", self.url, short(&error.to_string()))).way_out(
                "name the NameNode with its port, as in hdfs://namenode:8020/folder; for a name service set \
                 HADOOP_CONF_DIR to the folder of core-site.xml and hdfs-site.xml",
            )
        })
    }
}

impl Hdfs {
    /// Makes the client; nothing is asked of the NameNode yet.
    pub(super) fn new(
        address: &Address,
        options: &StorageOptions,
        environment: &Environment,
        runtime: Handle,
    ) -> Result<Self> {
        let Address::Hdfs { authority, prefix } = address else {
            return Err(Error::internal(format!("{address} is not HDFS")));
        };
        let settings = Settings {
            url: format!("hdfs://{authority}"),
            config_dir: environment.get("HADOOP_CONF_DIR").map(str::to_owned),
            user: environment.get("HADOOP_USER_NAME").map(str::to_owned),
            runtime,
        };
        let root = if prefix.is_empty() { String::new() } else { format!("/{}", encode(prefix)) };
        Ok(Self { client: RwLock::new(settings.client()?), settings, root, options: *options })
    }

    fn client(&self) -> Client {
        self.client.read().clone()
    }

    fn file(&self, path: &str) -> String {
        format!("{}/{}", self.root, encode(path))
    }

    /// One request under the limit of a try. Without an answer later requests take a new connection.
    async fn run<T>(&self, tries: &Tries, request: impl Future<Output = Result<T, HdfsError>>) -> Result<T, Failure> {
        let mut answered = false;
        let result = tries
            .run(async {
                let result = request.await;
                answered = true;
                result.map_err(|error| failure(&error))
            })
            .await;
        if !answered && let Ok(client) = self.settings.client() {
            *self.client.write() = client;
        }
        result
    }

    pub(super) async fn put(&self, path: &str, content: &Content, mode: PutMode) -> Result<PutOutcome, Failure> {
        let target = self.file(path);
        let mut tries = Tries::new(&self.options, content.size());
        loop {
            let failure = match self.put_once(&tries, &target, content, mode).await {
                Err(failure) => failure,
                done => return done,
            };
            match failure {
                Failure::Busy(_) if tries.again().await => {}
                failure => return Err(failure),
            }
        }
    }

    async fn put_once(
        &self,
        tries: &Tries,
        target: &str,
        content: &Content,
        mode: PutMode,
    ) -> Result<PutOutcome, Failure> {
        // The rename decides; this only saves writing for nothing.
        if mode == PutMode::Create && self.status(tries, target).await.map_err(Failure::without_effect)?.is_some() {
            return Ok(PutOutcome::Exists);
        }
        let temporary = format!("{}/{TEMPORARY}/{:032x}", self.root, rand::random::<u128>());
        if let Err(failure) = self.write(tries, &temporary, content).await {
            self.discard(&temporary).await;
            return Err(failure.without_effect());
        }
        self.publish(tries, &temporary, target, mode).await
    }

    async fn write(&self, tries: &Tries, file: &str, content: &Content) -> Result<(), Failure> {
        let client = self.client();
        let mut writer = self.run(tries, client.create(file, WriteOptions::default())).await?;
        let mut at = 0;
        while at < content.size() {
            let step = content.read(at..content.size().min(at + STEP))?;
            at += step.len() as u64;
            self.run(tries, writer.write_bytes(step)).await?;
        }
        self.run(tries, writer.close()).await
    }

    /// Gives the finished file its name. [`Failure::Busy`] if that surely did not happen.
    async fn publish(
        &self,
        tries: &Tries,
        temporary: &str,
        target: &str,
        mode: PutMode,
    ) -> Result<PutOutcome, Failure> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let client = self.client();
            let renamed = self.run(tries, client.rename(temporary, target, mode == PutMode::Overwrite)).await;
            match renamed {
                Ok(()) => return Ok(PutOutcome::Done),
                Err(Failure::NotFound(_)) if attempts < FOLDER_ATTEMPTS => {
                    let folder = target.rsplit_once('/').map_or("/", |(folder, _)| folder);
                    let made = self.run(tries, client.mkdirs(folder, FOLDER_MODE, true)).await;
                    made.map_err(Failure::without_effect)?;
                }
                Err(Failure::Unclear(error)) => {
                    let client = self.client();
                    return match self.run(&Tries::new(&self.options, 0), client.delete(temporary, false)).await {
                        Ok(true) => Err(Failure::Busy(error)),
                        Ok(false) => Ok(PutOutcome::Done),
                        Err(_) => Err(Failure::Unclear(error)),
                    };
                }
                Err(failure) => {
                    self.discard(temporary).await;
                    return match failure {
                        Failure::Exists(_) if mode == PutMode::Create => Ok(PutOutcome::Exists),
                        failure => Err(failure),
                    };
                }
            }
        }
    }

    /// Best effort, within one try; the sweep takes what stays.
    async fn discard(&self, file: &str) {
        let client = self.client();
        let _ = self.run(&Tries::new(&self.options, 0), client.delete(file, false)).await;
    }

    async fn status(&self, tries: &Tries, file: &str) -> Result<Option<FileStatus>, Failure> {
        let client = self.client();
        match self.run(tries, client.get_file_info(file)).await {
            Ok(status) => Ok(Some(status).filter(|status| !status.isdir)),
            Err(Failure::NotFound(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn size_of(&self, path: &str) -> Result<Option<u64>, Failure> {
        let file = self.file(path);
        let tries = Tries::new(&self.options, 0);
        let status = repeat(&self.options, 0, || self.status(&tries, &file)).await?;
        Ok(status.map(|status| status.length as u64))
    }

    /// A failed read begins anew: the file may have been replaced.
    pub(super) async fn read(
        &self,
        path: &str,
        range: Option<std::ops::Range<u64>>,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let mut tries = Tries::new(&self.options, 0);
        loop {
            match self.read_once(&mut tries, path, range.as_ref(), sink).await {
                Err(Failure::Unclear(_) | Failure::Busy(_)) if tries.again().await => sink.restart()?,
                done => return done,
            }
        }
    }

    async fn read_once(
        &self,
        tries: &mut Tries,
        path: &str,
        range: Option<&std::ops::Range<u64>>,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let client = self.client();
        let reader = self.run(tries, client.read(&self.file(path))).await?;
        let size = reader.file_length() as u64;
        let range = range.cloned().unwrap_or(0..size);
        if range.start > range.end || range.end > size {
            return Err(Failure::Refused(out_of_range(path, &range, size)));
        }
        let mut at = range.start;
        while at < range.end {
            let step = STEP.min(range.end - at);
            let bound = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            let chunk = self.run(tries, reader.read_range(bound(at), bound(step))).await?;
            at += step;
            sink.write(&chunk)?;
            tries.more_time(range.end - at);
        }
        Ok(())
    }

    /// Folder by folder; what vanishes meanwhile was not there.
    pub(super) async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, Failure> {
        let mut folders = vec![folder.to_owned()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for (status, name) in self.entries(&folder).await? {
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if status.isdir {
                    folders.push(path);
                } else {
                    found.push(ObjectMeta { path, size: status.length as u64 });
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Visible entries of one folder, with their decoded names.
    async fn entries(&self, folder: &str) -> Result<Vec<(FileStatus, String)>, Failure> {
        let place = if folder.is_empty() { self.root.clone() } else { self.file(folder) };
        let statuses = self.statuses(if place.is_empty() { "/" } else { &place }).await?;
        let named = statuses.into_iter().filter_map(|status| {
            // A file that is listed itself has the place for its path.
            let name = status.path.strip_prefix(&place)?.strip_prefix('/')?;
            let name = percent_encoding::percent_decode_str(name).decode_utf8().ok()?.into_owned();
            path::check(&name).is_ok().then_some((status, name))
        });
        Ok(named.collect())
    }

    async fn statuses(&self, folder: &str) -> Result<Vec<FileStatus>, Failure> {
        let mut tries = Tries::new(&self.options, 0);
        loop {
            match self.statuses_once(&mut tries, folder).await {
                Err(Failure::NotFound(_)) => return Ok(Vec::new()),
                Err(Failure::Unclear(_) | Failure::Busy(_)) if tries.again().await => {}
                done => return done,
            }
        }
    }

    async fn statuses_once(&self, tries: &mut Tries, folder: &str) -> Result<Vec<FileStatus>, Failure> {
        let listing = self.client().list_status_iter(folder, false);
        let mut found = Vec::new();
        while let Some(status) = self.run(tries, async { listing.next().await.transpose() }).await? {
            found.push(status);
            if found.len() % 1000 == 0 {
                tries.more_time(0);
            }
        }
        Ok(found)
    }

    pub(super) async fn delete(&self, paths: &[String]) -> Result<(), Failure> {
        let mut first = Ok(());
        for path in paths {
            first = first.and(self.delete_one(&self.file(path)).await);
        }
        first
    }

    async fn delete_one(&self, file: &str) -> Result<(), Failure> {
        let tries = Tries::new(&self.options, 0);
        repeat(&self.options, 0, || async {
            let client = self.client();
            self.run(&tries, client.delete(file, false)).await
        })
        .await?;
        // An empty folder is no object and nobody lists it; HDFS refuses to delete a full one.
        if let Some((folder, _)) = file.rsplit_once('/').filter(|(folder, _)| *folder != self.root) {
            self.discard(folder).await;
        }
        Ok(())
    }

    /// Removes what writers that died have left, best effort.
    pub(super) async fn sweep(&self, age: Duration) {
        let Ok(left) = self.statuses(&format!("{}/{TEMPORARY}", self.root)).await else { return };
        for status in left {
            let modified = UNIX_EPOCH + Duration::from_millis(status.modification_time);
            if SystemTime::now().duration_since(modified).is_ok_and(|elapsed| elapsed > age) {
                self.discard(&status.path).await;
            }
        }
    }
}

/// HDFS refuses `:` within a name; `%` marks what is encoded.
fn encode(path: &str) -> String {
    path.replace('%', "%25").replace(':', "%3A")
}

/// The meaning of one request's error. hdfs-native repeats no request that changes something unless it was never sent.
fn failure(error: &HdfsError) -> Failure {
    let plain = |text: &str| Error::new(Code::Storage, short(text));
    let text = error.to_string();
    match error {
        HdfsError::FileNotFound(_) | HdfsError::IsADirectoryError(_) => Failure::NotFound(plain(&text)),
        HdfsError::AlreadyExists(_) => Failure::Exists(plain(&text)),
        HdfsError::IOError(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
            Failure::Busy(plain(&text).way_out("check that the NameNode runs, and its host and port"))
        }
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => {
            let name = class.rsplit(['.', '$']).next().unwrap_or(class);
            let error = plain(&format!("{name}: {message}"));
            if name == "FileNotFoundException" {
                return Failure::NotFound(error);
            }
            if LASTING.contains(&name) {
                return Failure::Refused(error.way_out("check the user (HADOOP_USER_NAME), its rights and quota"));
            }
            // The NameNode judged the request and did not follow it.
            Failure::Busy(error)
        }
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => {
            Failure::Refused(plain(&text).way_out("check the Kerberos ticket: `klist`"))
        }
        HdfsError::InvalidPath(_)
        | HdfsError::InvalidArgument(_)
        | HdfsError::UnsupportedFeature(_)
        | HdfsError::UnsupportedErasureCodingPolicy(_) => Failure::Refused(plain(&text)),
        _ => Failure::Unclear(plain(&text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_hdfs_refuses_are_encoded_and_come_back() {
        for (path, encoded) in [("a/b c", "a/b c"), ("a/10:00", "a/10%3A00"), ("50%/x", "50%25/x"), ("%3A", "%253A")] {
            assert_eq!(encode(path), encoded);
            assert_eq!(percent_encoding::percent_decode_str(encoded).decode_utf8_lossy(), path);
        }
    }

    #[test]
    fn a_name_nodes_refusal_is_one_line_and_safe_mode_is_waited_for() {
        let rpc = |class: &str, text: &str| failure(&HdfsError::RPCError(class.into(), text.into()));
        let safe_mode = rpc("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "in safe mode.\n\tat java");
        assert!(matches!(&safe_mode, Failure::Busy(error) if error.cause == "SafeModeException: in safe mode."));
        let denied = rpc("org.apache.hadoop.security.AccessControlException", "no");
        assert!(matches!(denied, Failure::Refused(_)));
        assert!(matches!(rpc("java.io.FileNotFoundException", "no parent"), Failure::NotFound(_)));
    }
}
