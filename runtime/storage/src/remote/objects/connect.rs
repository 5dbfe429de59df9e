//! Clients of S3, Azure Blob Storage and Google Cloud Storage, from an address and the environment.

use std::{fs, sync::Arc, time::Duration};

use object_store::{
    Certificate, ClientOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, S3CopyIfNotExists},
    azure::MicrosoftAzureBuilder,
    gcp::GoogleCloudStorageBuilder,
    multipart::MultipartStore,
};
use streamkeeper_types::{Code, Error, Result};

use crate::{Environment, remote::failure::short};

/// Whole objects and parts.
pub(super) trait Client: ObjectStore + MultipartStore {}
impl<T: ObjectStore + MultipartStore> Client for T {}

/// What differs between the vendors.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// Word for what holds the objects.
    pub(super) bucket: &'static str,
    /// Way out when access is denied.
    pub(super) credentials: &'static str,
    /// Way out when nobody answers.
    pub(super) endpoint: &'static str,
    /// Whether an upload in parts can carry metadata.
    pub(super) part_metadata: bool,
}

static S3: Service = Service {
    bucket: "bucket",
    credentials: "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the role of this process; it needs \
        s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket",
    endpoint: "check the network and AWS_REGION; for a server of your own, AWS_ENDPOINT_URL. On AWS without keys the \
        credentials are asked for at 169.254.169.254",
    part_metadata: true,
};

static AZURE: Service = Service {
    bucket: "container",
    credentials: "check AZURE_STORAGE_ACCOUNT_KEY, or AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or the \
        workload identity; it needs the role Storage Blob Data Contributor",
    endpoint: "check the network and the account's name; for a server of your own, AZURE_STORAGE_ENDPOINT",
    part_metadata: false,
};

static GCS: Service = Service {
    bucket: "bucket",
    credentials: "check GOOGLE_APPLICATION_CREDENTIALS, or the service account of this process; it needs the role \
        Storage Object User",
    endpoint: "check the network; without GOOGLE_APPLICATION_CREDENTIALS the credentials are asked for at \
        metadata.google.internal",
    part_metadata: true,
};

/// Our own tries and limits apply, so object_store's are off.
const NO_RETRIES: RetryConfig = RetryConfig {
    backoff: object_store::BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(1),
        base: 2.,
    },
    max_retries: 0,
    retry_timeout: Duration::from_secs(30),
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) type Connected = (Arc<dyn Client>, &'static Service);

pub(super) fn s3(bucket: &str, environment: &Environment) -> Result<Connected> {
    let mut builder = AmazonS3Builder::new().with_client_options(client_options(environment)?);
    for (name, value) in environment.starting("AWS_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    // The completion of an upload in parts can be conditional; a copy cannot.
    let builder = builder.with_bucket_name(bucket).with_copy_if_not_exists(S3CopyIfNotExists::Multipart);
    let client = builder.with_retry(NO_RETRIES).build().map_err(|error| unusable(&S3, &error))?;
    Ok((Arc::new(client), &S3))
}

pub(super) fn azure(container: &str, account: Option<&str>, environment: &Environment) -> Result<Connected> {
    let mut builder = MicrosoftAzureBuilder::new().with_client_options(client_options(environment)?);
    for (name, value) in environment.starting("AZURE_").chain(environment.starting("IDENTITY_")) {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(account) = account {
        builder = builder.with_account(account);
    }
    let builder = builder.with_container_name(container).with_retry(NO_RETRIES);
    let client = builder.build().map_err(|error| unusable(&AZURE, &error))?;
    Ok((Arc::new(client), &AZURE))
}

pub(super) fn gcs(bucket: &str, environment: &Environment) -> Result<Connected> {
    let mut builder = GoogleCloudStorageBuilder::new().with_client_options(client_options(environment)?);
    for (name, value) in environment.starting("GOOGLE_").chain(environment.starting("SERVICE_ACCOUNT")) {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder.with_bucket_name(bucket).with_retry(NO_RETRIES);
    let client = builder.build().map_err(|error| unusable(&GCS, &error))?;
    Ok((Arc::new(client), &GCS))
}

fn client_options(environment: &Environment) -> Result<ClientOptions> {
    let options = ClientOptions::new().with_timeout_disabled().with_connect_timeout(CONNECT_TIMEOUT);
    let Some(file) = environment.get("AWS_CA_BUNDLE") else { return Ok(options) };
    let pem = fs::read(file).map_err(|error| Error::io(Code::FileUnreadable, file, &error).at("AWS_CA_BUNDLE"))?;
    let certificates = Certificate::from_pem_bundle(&pem)
        .map_err(|error| Error::new(Code::OptionInvalid, format!("{file}: {error}")).at("AWS_CA_BUNDLE"))?;
    Ok(certificates.into_iter().fold(options, ClientOptions::with_root_certificate))
}

fn unusable(service: &Service, error: &object_store::Error) -> Error {
    Error::new(Code::OptionInvalid, short(&error.to_string())).way_out(service.credentials)
}
