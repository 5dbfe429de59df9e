//! S3, Azure Blob Storage and Google Cloud Storage, through object_store's clients.
//!
//! Parts of paths are percent-encoded where a vendor advises against a character, and decoded in listings.

mod classify;
mod connect;
mod upload;

use std::{borrow::Cow, collections::BTreeSet, ops::Range, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, GetRange, GetResult, ObjectStoreExt, path::Path};
use streamkeeper_types::{Code, Error, Result};
use tokio::sync::Semaphore;

use self::connect::{Client, Connected, Service};
use super::{
    address::Address,
    content::{Content, Sink},
    failure::Failure,
    tries::{Tries, repeat},
};
use crate::{Environment, ObjectMeta, PutMode, PutOutcome, StorageOptions, memory::out_of_range, path};

/// Folder of uploads that are not complete; hidden, so that no object path names it.
const TEMPORARY: &str = ".tmp";

/// Memory for content of files that are being uploaded, in MiB.
const UPLOAD_MEMORY_MIB: u32 = 128;

/// Objects that one request deletes.
const DELETES_AT_ONCE: usize = 250;

/// Objects below one prefix of a bucket or container.
#[derive(Debug)]
pub(super) struct Objects {
    client: Arc<dyn Client>,
    service: &'static Service,
    prefix: Path,
    options: StorageOptions,
    upload_memory: Arc<Semaphore>,
}

impl Objects {
    /// Makes the client; nothing is asked of the server yet.
    pub(super) fn new(address: &Address, options: &StorageOptions, environment: &Environment) -> Result<Self> {
        let (client, service): Connected = match address {
            Address::S3 { bucket, .. } => connect::s3(bucket, environment)?,
            Address::Gcs { bucket, .. } => connect::gcs(bucket, environment)?,
            Address::Azure { container, account, .. } => connect::azure(container, account.as_deref(), environment)?,
            Address::Hdfs { .. } => return Err(Error::internal(format!("{address} is no object storage"))),
        };
        let prefix = address.prefix().split('/').filter(|part| !part.is_empty()).collect();
        let upload_memory = Arc::new(Semaphore::new(UPLOAD_MEMORY_MIB as usize));
        Ok(Self { client, service, prefix, options: *options, upload_memory })
    }

    fn key(&self, path: &str) -> Path {
        path.split('/').fold(self.prefix.clone(), Path::join)
    }

    /// The object path of a listed key; `None` for what is none of ours.
    fn path_of(&self, key: &Path) -> Option<String> {
        let decode = |part: object_store::path::PathPart<'_>| {
            percent_encoding::percent_decode_str(part.as_ref()).decode_utf8().ok().map(Cow::into_owned)
        };
        let parts: Option<Vec<String>> = key.prefix_match(&self.prefix)?.map(decode).collect();
        Some(parts?.join("/")).filter(|path| path::check(path).is_ok())
    }

    fn temporary(&self) -> Path {
        self.prefix.clone().join(TEMPORARY).join(upload::random_name())
    }

    fn failure(&self, error: &object_store::Error) -> Failure {
        self.service.failure(error)
    }

    fn permits(bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX).min(UPLOAD_MEMORY_MIB)
    }

    pub(super) async fn put(&self, path: &str, content: &Content, mode: PutMode) -> Result<PutOutcome, Failure> {
        match mode {
            PutMode::Create => self.create(&self.key(path), content).await,
            PutMode::Overwrite => self.overwrite(&self.key(path), content).await,
        }
    }

    /// Reads the object, or a range of it that it has, into `sink`. After a failure the read goes on behind what has
    /// arrived, unless the object was replaced meanwhile: then it begins anew.
    pub(super) async fn read(&self, path: &str, range: Option<Range<u64>>, sink: &mut Sink) -> Result<(), Failure> {
        let key = self.key(path);
        if let Some(range) = range.as_ref().filter(|range| range.start >= range.end) {
            return self.read_nothing(&key, path, range).await;
        }
        let start = range.as_ref().map_or(0, |range| range.start);
        let mut reading = Reading { at: start, end: range.as_ref().map(|range| range.end), tag: None };
        let mut tries = Tries::new(&self.options, 0);
        loop {
            let failure = match self.read_on(&key, &mut reading, &mut tries, sink).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            match failure {
                Failure::Changed(error) => {
                    sink.restart()?;
                    reading = Reading { at: start, end: range.as_ref().map(|range| range.end), tag: None };
                    if !tries.again().await {
                        return Err(Failure::Busy(error));
                    }
                }
                Failure::Unclear(_) | Failure::Busy(_) if tries.again().await => {}
                // The server may have refused the range itself.
                Failure::Refused(error) => return Err(self.range_failure(&key, path, range, error).await),
                failure => return Err(failure),
            }
        }
    }

    async fn read_on(
        &self,
        key: &Path,
        reading: &mut Reading,
        tries: &mut Tries,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let range = match (reading.at, reading.end) {
            (0, None) => None,
            (at, None) => Some(GetRange::Offset(at)),
            (at, Some(end)) => Some(GetRange::Bounded(at..end)),
        };
        let options = GetOptions { range, if_match: reading.tag.clone(), ..GetOptions::default() };
        let got = tries.run(async { self.client.get_opts(key, options).await.map_err(|e| self.failure(&e)) }).await?;
        let end = reading.end.unwrap_or(got.meta.size);
        if end > got.meta.size {
            let error = Error::new(Code::Storage, format!("it has {} bytes only", got.meta.size));
            return Err(Failure::Refused(error));
        }
        reading.end = Some(end);
        reading.tag = got.meta.e_tag.clone();
        let mut chunks = got.into_stream();
        while reading.at < end {
            let next = async { chunks.try_next().await.map_err(|error| self.failure(&error)) };
            let Some(chunk) = tries.run(next).await? else {
                return Err(Failure::Unclear(Error::new(Code::Storage, "the answer ended too early")));
            };
            reading.at += chunk.len() as u64;
            sink.write(&chunk)?;
            tries.progress(end - reading.at);
        }
        Ok(())
    }

    /// An empty or reversed range: no server answers it.
    async fn read_nothing(&self, key: &Path, path: &str, range: &Range<u64>) -> Result<(), Failure> {
        let size = self.size(key).await?;
        if range.start == range.end && range.end <= size {
            return Ok(());
        }
        Err(Failure::Refused(out_of_range(path, range, size)))
    }

    async fn range_failure(&self, key: &Path, path: &str, range: Option<Range<u64>>, error: Error) -> Failure {
        let Some(range) = range else { return Failure::Refused(error) };
        match self.size(key).await {
            Ok(size) if range.end > size => Failure::Refused(out_of_range(path, &range, size)),
            Ok(_) => Failure::Refused(error),
            Err(failure) => failure,
        }
    }

    async fn size(&self, key: &Path) -> Result<u64, Failure> {
        repeat(&self.options, 0, || self.head_once(key)).await.map(|found| found.meta.size)
    }

    async fn head_once(&self, key: &Path) -> Result<GetResult, Failure> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        self.client.get_opts(key, options).await.map_err(|error| self.failure(&error))
    }

    async fn head(&self, key: &Path) -> Result<Option<u64>, Failure> {
        match self.size(key).await {
            Ok(size) => Ok(Some(size)),
            Err(Failure::NotFound(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn size_of(&self, path: &str) -> Result<Option<u64>, Failure> {
        self.head(&self.key(path)).await
    }

    /// Pages of a thousand or so, each with its own time.
    pub(super) async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, Failure> {
        let start = if folder.is_empty() { self.prefix.clone() } else { self.key(folder) };
        let mut tries = Tries::new(&self.options, 0);
        loop {
            match self.list_once(&start, &mut tries).await {
                Err(Failure::Unclear(_) | Failure::Busy(_)) if tries.again().await => {}
                listed => return listed,
            }
        }
    }

    async fn list_once(&self, start: &Path, tries: &mut Tries) -> Result<Vec<ObjectMeta>, Failure> {
        let mut listing = self.client.list(Some(start).filter(|start| !start.is_root()));
        let mut found = Vec::new();
        loop {
            let next = async { listing.try_next().await.map_err(|error| self.failure(&error)) };
            let Some(meta) = tries.run(next).await? else { break };
            if found.len() % 1000 == 0 {
                tries.more_time(0);
            }
            if let Some(path) = self.path_of(&meta.location) {
                found.push(ObjectMeta { path, size: meta.size });
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    pub(super) async fn delete(&self, paths: &[String]) -> Result<(), Failure> {
        for chunk in paths.chunks(DELETES_AT_ONCE) {
            let keys: BTreeSet<Path> = chunk.iter().map(|path| self.key(path)).collect();
            repeat(&self.options, 0, || self.delete_once(&keys)).await?;
        }
        Ok(())
    }

    async fn delete_once(&self, keys: &BTreeSet<Path>) -> Result<(), Failure> {
        let keys: Vec<_> = keys.iter().cloned().map(Ok).collect();
        let mut deleted = self.client.delete_stream(stream::iter(keys).boxed());
        let mut first = Ok(());
        while let Some(result) = deleted.next().await {
            match result.map_err(|error| self.failure(&error)) {
                Ok(_) | Err(Failure::NotFound(_)) => {}
                Err(failure) => first = first.and(Err(failure)),
            }
        }
        first
    }

    /// Best effort, within one try.
    async fn discard(&self, key: &Path) {
        let delete = async { self.client.delete(key).await.map_err(|error| self.failure(&error)) };
        let _ = Tries::new(&self.options, 0).run(delete).await;
    }

    /// Removes what writers that died have left, best effort.
    pub(super) async fn sweep(&self, age: Duration) {
        let mut listing = self.client.list(Some(&self.prefix.clone().join(TEMPORARY)));
        let tries = Tries::new(&self.options, 0);
        while let Ok(Some(meta)) =
            tries.run(async { listing.try_next().await.map_err(|error| self.failure(&error)) }).await
        {
            let modified = std::time::SystemTime::from(meta.last_modified);
            if modified.elapsed().is_ok_and(|elapsed| elapsed > age) {
                self.discard(&meta.location).await;
            }
        }
    }
}

/// How far a read is.
struct Reading {
    at: u64,
    /// Known from the caller or from the first answer.
    end: Option<u64>,
    /// The version of which the part before `at` was read.
    tag: Option<String>,
}
