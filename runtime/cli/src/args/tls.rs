//! Certificates of the processes of one job.

use std::path::{Path, PathBuf};

use clap::Args;
use streamkeeper_protocol::control::TlsIdentity;
use streamkeeper_types::Result;

use crate::job_file::read_text;

/// Mutual TLS: the three files together, or none. The same for the control plane and the data between TaskManagers.
#[derive(Debug, Args)]
pub struct Tls {
    /// This process's certificate, in PEM. With it all connections use mutual TLS.
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The certificates that sign those of all processes of the job, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// The name that stands in all of them.
    #[arg(long, value_name = "NAME", default_value = "streamkeeper")]
    pub tls_name: String,
}

impl Tls {
    /// What the files hold; `None` if none is given.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(&self) -> Result<Option<TlsIdentity>> {
        let (Some(certificate), Some(key), Some(roots)) = (&self.tls_cert, &self.tls_key, &self.tls_ca) else {
            return Ok(None);
        };
        let read = |file: &Path| read_text(file).map(String::into_bytes);
        let (certificates, key, roots) = (read(certificate)?, read(key)?, read(roots)?);
        Ok(Some(TlsIdentity { roots, certificates, key, name: self.tls_name.clone() }))
    }
}
