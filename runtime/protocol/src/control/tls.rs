//! Mutual TLS of the control plane, with the certificates of the cluster alone.

use streamkeeper_types::{Code, Error, Result};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};

/// What a process shows and what it trusts, as PEM text. JobManagers and TaskManagers are all made alike: each shows its
/// certificate, whichever side began.
#[derive(Clone)]
pub struct TlsIdentity {
    /// Certificates that sign the others'.
    pub roots: Vec<u8>,
    /// This process's certificate, and what leads from it to a root.
    pub certificates: Vec<u8>,
    pub key: Vec<u8>,
    /// The name in every certificate. Pods come and go under changing addresses, so one name serves all.
    pub name: String,
}

impl std::fmt::Debug for TlsIdentity {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsIdentity").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TlsIdentity {
    /// For whoever listens: only peers with a certificate of the same roots are let in.
    #[must_use]
    pub fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new().identity(self.identity()).client_ca_root(self.root())
    }

    fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new().identity(self.identity()).ca_certificate(self.root()).domain_name(&self.name)
    }

    fn identity(&self) -> Identity {
        Identity::from_pem(&self.certificates, &self.key)
    }

    fn root(&self) -> Certificate {
        Certificate::from_pem(&self.roots)
    }
}

/// How the JobManager at `address` (`host:port`) is dialled.
///
/// # Errors
/// `OPTION_INVALID` for what is no address, or for certificates that are none.
pub fn endpoint(address: &str, tls: Option<&TlsIdentity>) -> Result<Endpoint> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).map_err(|error| {
        Error::new(Code::OptionInvalid, format!("JobManager `{address}`: {error}")).way_out("write host:port")
    })?;
    let endpoint = endpoint.tcp_nodelay(true);
    match tls {
        Some(tls) => endpoint.tls_config(tls.client()).map_err(|error| unusable(&error)),
        None => Ok(endpoint),
    }
}

/// What is wrong with a process's own certificates.
#[must_use]
pub fn unusable(error: &tonic::transport::Error) -> Error {
    Error::new(Code::OptionInvalid, format!("TLS between JobManager and TaskManagers: {}", innermost(error)))
        .way_out("give PEM files: a certificate, its private key, and the certificates that sign the others'")
}

/// The cause at the bottom: `Connection refused` says more than `transport error`.
#[must_use]
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
