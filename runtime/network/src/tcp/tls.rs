//! Mutual TLS 1.3 between TaskManagers, with the certificates of the cluster alone.

use std::sync::Arc;

use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    server::WebPkiClientVerifier,
    version::TLS13,
};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use crate::frame::Fault;

/// What TLS needs, as PEM text. Every TaskManager is client and server.
#[derive(Clone)]
pub struct TlsOptions {
    /// Certificates that sign the others'.
    pub roots: Vec<u8>,
    /// This TaskManager's certificate, and what leads from it to a root.
    pub certificates: Vec<u8>,
    pub key: Vec<u8>,
    /// The name in every TaskManager's certificate. Pods come and go under changing addresses, so one name serves all.
    pub name: String,
}

impl std::fmt::Debug for TlsOptions {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsOptions").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Ready to make sessions.
#[derive(Debug)]
pub(super) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// # Errors
    /// `OPTION_INVALID` for text that holds no usable certificate or key.
    pub(super) fn new(options: &TlsOptions) -> Result<Self> {
        let roots = certificates(&options.roots, "the root certificates")?;
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(root).map_err(|e| invalid("a root certificate", &e))?;
        }
        let store = Arc::new(store);
        let chain = certificates(&options.certificates, "the certificate")?;
        let key = || PrivateKeyDer::from_pem_slice(&options.key).map_err(|e| invalid("the private key", &e));
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&store), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|e| invalid("the root certificates", &e))?;
        let server = server(&provider)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key()?)
            .map_err(|e| invalid("certificate and key", &e))?;
        let client = client(&provider)?
            .with_root_certificates(store)
            .with_client_auth_cert(chain, key()?)
            .map_err(|e| invalid("certificate and key", &e))?;
        let name = ServerName::try_from(options.name.clone()).map_err(|e| invalid("the TLS name", &e))?;
        Ok(Self { client: Arc::new(client), server: Arc::new(server), name })
    }

    pub(super) fn dial(&self) -> Result<Connection, Fault> {
        let session = ClientConnection::new(Arc::clone(&self.client), self.name.clone());
        session.map(Connection::from).map_err(|e| Fault::Tls(e.to_string()))
    }

    pub(super) fn accept(&self) -> Result<Connection, Fault> {
        let session = ServerConnection::new(Arc::clone(&self.server));
        session.map(Connection::from).map_err(|e| Fault::Tls(e.to_string()))
    }
}

fn client(provider: &Arc<CryptoProvider>) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>> {
    ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])
        .or_code(Code::Internal, || "TLS 1.3".into())
}

fn server(provider: &Arc<CryptoProvider>) -> Result<rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier>> {
    ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])
        .or_code(Code::Internal, || "TLS 1.3".into())
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().map_err(|e| invalid(what, &e))?;
    if found.is_empty() {
        return Err(invalid(what, &"there is none"));
    }
    Ok(found)
}

fn invalid(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(Code::OptionInvalid, format!("TLS between TaskManagers: {what}: {error}"))
        .way_out("give PEM text: `-----BEGIN CERTIFICATE-----` or `-----BEGIN PRIVATE KEY-----`")
}
