//! Storage over a network: blocking calls outside, asynchronous clients inside.
//!
//! Every request has our own time limit, and every call a deadline. What may be repeated is repeated after growing
//! waits; a write whose outcome cannot be learnt within the deadline is [`StorageError::Unknown`].

mod address;
mod bridge;
mod content;
mod failure;
mod hdfs;
mod objects;
mod tries;

use std::{fmt, ops::Range, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use streamkeeper_types::Result;
use tokio::runtime::Handle;

pub(crate) use self::address::Address;
use self::{
    content::{Content, Sink},
    failure::Failure,
    hdfs::Hdfs,
    objects::Objects,
};
use crate::{
    Environment, ObjectMeta, PutMode, PutOutcome, SmallObjects, Storage, StorageError, StorageOptions, StorageResult,
    crash_points, path,
};

/// Unfinished uploads of writers that died. No upload takes as long.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// One folder of a remote storage.
pub(crate) struct RemoteStorage {
    address: Address,
    store: Arc<Store>,
    runtime: Handle,
}

#[derive(Debug)]
enum Store {
    Objects(Objects),
    Hdfs(Hdfs),
}

impl Store {
    async fn put(&self, path: &str, content: &Content, mode: PutMode) -> Result<PutOutcome, Failure> {
        match self {
            Self::Objects(objects) => objects.put(path, content, mode).await,
            Self::Hdfs(hdfs) => hdfs.put(path, content, mode).await,
        }
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>, sink: &mut Sink) -> Result<(), Failure> {
        match self {
            Self::Objects(objects) => objects.read(path, range, sink).await,
            Self::Hdfs(hdfs) => hdfs.read(path, range, sink).await,
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, Failure> {
        match self {
            Self::Objects(objects) => objects.list(folder).await,
            Self::Hdfs(hdfs) => hdfs.list(folder).await,
        }
    }

    async fn delete(&self, paths: &[String]) -> Result<(), Failure> {
        match self {
            Self::Objects(objects) => objects.delete(paths).await,
            Self::Hdfs(hdfs) => hdfs.delete(paths).await,
        }
    }

    async fn size_of(&self, path: &str) -> Result<Option<u64>, Failure> {
        match self {
            Self::Objects(objects) => objects.size_of(path).await,
            Self::Hdfs(hdfs) => hdfs.size_of(path).await,
        }
    }

    async fn sweep(&self) {
        match self {
            Self::Objects(objects) => objects.sweep(ABANDONED_AFTER).await,
            Self::Hdfs(hdfs) => hdfs.sweep(ABANDONED_AFTER).await,
        }
    }
}

impl RemoteStorage {
    /// Makes the client. Whether the server answers shows at the first call.
    ///
    /// # Errors
    /// Limits or settings of the environment are wrong.
    pub(crate) fn open(address: Address, options: &StorageOptions, environment: &Environment) -> Result<Self> {
        options.check()?;
        let runtime = bridge::runtime()?;
        let store = match &address {
            Address::Hdfs { .. } => Store::Hdfs(Hdfs::new(&address, options, environment, runtime.clone())?),
            _ => Store::Objects(Objects::new(&address, options, environment)?),
        };
        let store = Arc::new(store);
        let swept = Arc::clone(&store);
        runtime.spawn(async move { swept.sweep().await });
        Ok(Self { address, store, runtime })
    }

    /// How an object is named in messages.
    fn place(&self, path: &str) -> String {
        format!("{}/{path}", self.address)
    }

    fn wait<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        bridge::wait(&self.runtime, call).unwrap_or_else(|error| Err(Failure::Unclear(error)))
    }

    fn put_content(&self, path: &str, content: Content, mode: PutMode) -> StorageResult<PutOutcome> {
        let (store, key) = (Arc::clone(&self.store), path.to_owned());
        let put = async move { store.put(&key, &content, mode).await };
        crash_points::around("put", path, || self.wait(put)).map_err(|failure| failure.of_write(&self.place(path)))
    }

    fn read(&self, path: &str, range: Option<Range<u64>>, mut sink: Sink) -> StorageResult<Bytes> {
        path::check(path).map_err(StorageError::Other)?;
        let (store, key) = (Arc::clone(&self.store), path.to_owned());
        let read = async move { store.read(&key, range, &mut sink).await.map(|()| sink) };
        let sink = self.wait(read).map_err(|failure| failure.of_read(path, &self.place(path)))?;
        sink.finish().map_err(StorageError::Other)
    }

    fn remove(&self, paths: Vec<String>, place: &str) -> StorageResult<()> {
        let store = Arc::clone(&self.store);
        let removed = self.wait(async move { store.delete(&paths).await });
        removed.map_err(|failure| failure.of_write(&self.place(place)))
    }
}

impl fmt::Debug for RemoteStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteStorage({})", self.address)
    }
}

impl Storage for RemoteStorage {
    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> StorageResult<PutOutcome> {
        path::check(path).map_err(StorageError::Other)?;
        self.put_content(path, Content::Bytes(bytes), mode)
    }

    fn put_file(&self, path: &str, local: &Path, mode: PutMode) -> StorageResult<PutOutcome> {
        path::check(path).map_err(StorageError::Other)?;
        self.put_content(path, Content::of_file(local).map_err(StorageError::Other)?, mode)
    }

    fn get(&self, path: &str) -> StorageResult<Bytes> {
        self.read(path, None, Sink::Bytes(Vec::new()))
    }

    fn get_range(&self, path: &str, range: Range<u64>) -> StorageResult<Bytes> {
        self.read(path, Some(range), Sink::Bytes(Vec::new()))
    }

    fn get_to_file(&self, path: &str, local: &Path) -> StorageResult<()> {
        self.read(path, None, Sink::to_file(local).map_err(StorageError::Other)?).map(drop)
    }

    fn list(&self, folder: &str) -> StorageResult<Vec<ObjectMeta>> {
        path::check_folder(folder).map_err(StorageError::Other)?;
        let (store, key) = (Arc::clone(&self.store), folder.to_owned());
        // A folder that does not exist is empty: what is not found is the bucket.
        let listed = self.wait(async move { store.list(&key).await });
        listed.map_err(|failure| failure.of_list(&self.place(folder)))
    }

    fn delete(&self, path: &str) -> StorageResult<()> {
        path::check(path).map_err(StorageError::Other)?;
        crash_points::around("delete", path, || self.remove(vec![path.to_owned()], path))
    }

    fn delete_all(&self, paths: &[String]) -> StorageResult<()> {
        for path in paths {
            path::check(path).map_err(StorageError::Other)?;
        }
        let Some(first) = paths.first() else { return Ok(()) };
        crash_points::around("delete", first, || self.remove(paths.to_vec(), first))
    }

    fn head(&self, path: &str) -> StorageResult<Option<ObjectMeta>> {
        path::check(path).map_err(StorageError::Other)?;
        let (store, key) = (Arc::clone(&self.store), path.to_owned());
        let size = self.wait(async move { store.size_of(&key).await });
        let size = size.map_err(|failure| failure.of_read(path, &self.place(path)))?;
        Ok(size.map(|size| ObjectMeta { path: path.to_owned(), size }))
    }

    fn small_objects(&self) -> SmallObjects {
        match &*self.store {
            Store::Objects(_) => SmallObjects::Quick,
            Store::Hdfs(_) => SmallObjects::Slow,
        }
    }
}
