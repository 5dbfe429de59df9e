//! One fixture for each kind of storage. Servers are started once for this process, by the first test that needs one.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use streamkeeper_storage::{Environment, MemoryStorage, Storage, StorageOptions, open_with};
use tempfile::TempDir;

use crate::service::Service;

/// A storage with nothing in it, and how much a test may ask of it.
pub struct Fixture {
    pub storage: Arc<dyn Storage>,
    pub scratch: TempDir,
    /// Repetitions of what is random.
    pub rounds: usize,
    /// Objects that one page of a listing cannot hold.
    pub more_than_a_page: usize,
    /// Bytes that need several requests.
    pub large: usize,
}

impl Fixture {
    fn new(storage: Arc<dyn Storage>) -> Self {
        let scratch = TempDir::new().unwrap();
        Self { storage, scratch, rounds: 20, more_than_a_page: 1_050, large: 3 << 20 }
    }
}

/// A folder that no other test uses.
pub fn folder() -> String {
    format!("test-{:016x}", rand::random::<u64>())
}

pub fn at(url: &str, environment: &Environment) -> Arc<dyn Storage> {
    open_with(url, Path::new("/"), &StorageOptions::default(), environment).unwrap()
}

pub fn s3_service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| Service::start("s3", &[]))
}

fn s3_tls_service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| Service::start("s3", &["--tls"]))
}

pub fn azure_service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| Service::start("azure", &[]))
}

/// Listings of ten files a page.
pub fn hdfs_service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| Service::start("hdfs", &["--prop", "dfs.ls.limit=10"]))
}

pub fn s3_url(service: &Service) -> String {
    format!("s3://{}/{}", service.variable("S3_BUCKET"), folder())
}

pub fn memory() -> Fixture {
    Fixture::new(Arc::new(MemoryStorage::new()))
}

pub fn file() -> Fixture {
    let fixture = Fixture::new(Arc::new(MemoryStorage::new()));
    let url = fixture.scratch.path().join("storage");
    Fixture { storage: at(url.to_str().unwrap(), &Environment::default()), ..fixture }
}

pub fn s3() -> Fixture {
    let service = s3_service();
    Fixture { rounds: 10, large: 20_000_007, ..Fixture::new(at(&s3_url(service), &service.environment())) }
}

/// `https`, with a certificate of our own that `AWS_CA_BUNDLE` names.
pub fn s3_tls() -> Fixture {
    let service = s3_tls_service();
    let environment = service.environment_with(&[("AWS_CA_BUNDLE", service.variable("S3_CA").to_owned())]);
    Fixture { rounds: 4, more_than_a_page: 30, large: 20_000_007, ..Fixture::new(at(&s3_url(service), &environment)) }
}

pub fn azure() -> Fixture {
    let service = azure_service();
    let url = format!("az://{}/{}", service.variable("AZURE_CONTAINER"), folder());
    let fixture = Fixture::new(at(&url, &service.environment()));
    Fixture { rounds: 5, more_than_a_page: 300, large: 20_000_007, ..fixture }
}

/// Half a second for each file: small numbers.
pub fn hdfs() -> Fixture {
    let service = hdfs_service();
    let url = format!("{}/{}", service.variable("HDFS_URL"), folder());
    let fixture = Fixture::new(at(&url, &service.environment()));
    Fixture { rounds: 2, more_than_a_page: 25, large: 20_000_007, ..fixture }
}
