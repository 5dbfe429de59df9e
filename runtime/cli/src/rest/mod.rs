//! The REST API from a person's side: one blocking call each, with a timeout, and errors that say what to do.

mod answer;

use std::{path::Path, time::Duration};

use reqwest::{Method, StatusCode, Url, header};
use serde::{Serialize, de::DeserializeOwned};
use streamkeeper_protocol::rest::{JobSummary, Overview};
use streamkeeper_types::{Code, Error, Result, ResultExt, duration};
use tokio::runtime::{Builder, Runtime};

pub use answer::error_of;

/// Times that a POST is sent with the same key while nobody knows whether it arrived.
const POST_ATTEMPTS: usize = 3;

/// The largest answer taken: the tasks of a checkpoint of a very large job.
const MAX_ANSWER: usize = 64 << 20;

/// A JobManager's REST API.
pub struct Client {
    runtime: Runtime,
    http: reqwest::Client,
    base: Url,
    token: Option<String>,
    timeout: Duration,
}

/// What a call came to, before its body is understood.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

impl Client {
    /// `address` as in `http://127.0.0.1:8081`, the scheme may be left out. Asks nothing yet; each call may take
    /// `timeout`.
    ///
    /// # Errors
    /// `OPTION_INVALID` for an address that is none.
    pub fn new(address: &str, token: Option<String>, timeout: Duration) -> Result<Self> {
        let base = parse(address)?;
        // `Err` means that the program has chosen its provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A JobManager stands near: no proxy, and a redirect is not its answer.
        let mut http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // Between two calls nobody drives a connection.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("streamkeeper/", env!("CARGO_PKG_VERSION")))
            .timeout(timeout);
        if base.scheme() == "http" {
            // Saves reading the machine's certificates.
            http = http.tls_certs_only([]);
        }
        let http = http.build().or_code(Code::RestUnreachable, || "preparing TLS".to_owned())?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.or_code(Code::Internal, || "starting a runtime".to_owned())?;
        Ok(Self { runtime, http, base, token, timeout })
    }

    /// The address, for messages.
    #[must_use]
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// # Errors
    /// `REST_UNREACHABLE`, or what the JobManager answered.
    pub fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T> {
        let answer = self.send(Method::GET, &self.url(path), None, None)?;
        answer::read(self.address(), answer.status, &answer.body)
    }

    /// [`Client::get`] of something that is answered once it has ended, or after half of the time that a call may take.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn wait<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T> {
        let mut url = self.url(path);
        url.query_pairs_mut().append_pair("wait", &duration::format(self.timeout / 2));
        let answer = self.send(Method::GET, &url, None, None)?;
        answer::read(self.address(), answer.status, &answer.body)
    }

    /// Asks for something once, however often the request must be sent.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn post<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> Result<T> {
        let body = encode(body)?;
        let key = format!("{:032x}", rand::random::<u128>());
        let mut attempt = 1;
        loop {
            match self.send(Method::POST, &self.url(path), Some(&body), Some(&key)) {
                Ok(answer) => return answer::read(self.address(), answer.status, &answer.body),
                Err(Unanswered::Unknown(_)) if attempt < POST_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whatever the answer says beside success is not looked at.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn put(&self, path: &[&str], body: &impl Serialize) -> Result<()> {
        let body = encode(body)?;
        let answer = self.send(Method::PUT, &self.url(path), Some(&body), None)?;
        answer::check(self.address(), answer.status, &answer.body)
    }

    /// The job that is meant: the named one, or the only one.
    ///
    /// # Errors
    /// As [`Client::get`]; `OPTION_INVALID` if there is none or several.
    pub fn job(&self, named: Option<&str>) -> Result<String> {
        if let Some(id) = named {
            return Ok(id.to_owned());
        }
        let overview: Overview = self.get(&["overview"])?;
        only(&overview.jobs)
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        // Parsed as `http` or `https`, which always have segments.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    fn send(&self, method: Method, url: &Url, body: Option<&[u8]>, key: Option<&str>) -> Result<Answer, Unanswered> {
        let mut request = self.http.request(method, url.clone()).header(header::ACCEPT, "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_vec());
        }
        self.runtime.block_on(exchange(request)).map_err(|error| self.unanswered(&error))
    }

    fn unanswered(&self, error: &Broken) -> Unanswered {
        let address = self.address();
        let way_out = "give the address of `streamkeeper jobmanager --rest`, and look whether that process runs";
        let unreachable = |cause: String| Error::new(Code::RestUnreachable, cause).way_out(way_out);
        match error {
            Broken::Http(error) if error.is_connect() => {
                Unanswered::NotSent(unreachable(format!("nobody can be reached at {address}: {}", innermost(error))))
            }
            Broken::Http(error) if error.is_timeout() => {
                let timeout = duration::format(self.timeout);
                Unanswered::Unknown(unreachable(format!("no answer from {address} within {timeout}")))
            }
            Broken::Http(error) => {
                Unanswered::Unknown(unreachable(format!("{address} broke off: {}", innermost(error))))
            }
            Broken::TooLong => Unanswered::NotSent(unreachable(format!("{address} answers without end"))),
        }
    }
}

/// Why there is no answer.
enum Unanswered {
    /// Another attempt would fail alike.
    NotSent(Error),
    /// The request may have arrived.
    Unknown(Error),
}

impl From<Unanswered> for Error {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotSent(error) | Unanswered::Unknown(error) => error,
        }
    }
}

enum Broken {
    Http(reqwest::Error),
    TooLong,
}

impl From<reqwest::Error> for Broken {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error)
    }
}

async fn exchange(request: reqwest::RequestBuilder) -> Result<Answer, Broken> {
    let mut response = request.send().await?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(Broken::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status: response.status(), body })
}

fn encode(body: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|error| Error::internal(error.to_string()))
}

fn parse(address: &str) -> Result<Url> {
    let wrong = |cause: String| {
        Error::new(Code::OptionInvalid, cause).way_out("write it as in http://127.0.0.1:8081").at("REST address")
    };
    let text = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let url = Url::parse(&text).map_err(|error| wrong(format!("`{address}`: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("`{address}` is neither http nor https")));
    }
    Ok(url)
}

/// The token in a file, without the line end that editors add.
///
/// # Errors
/// `FILE_UNREADABLE`; `OPTION_INVALID` if nothing stands in it that a header can carry.
pub fn read_token(path: &Path) -> Result<String> {
    let text = crate::job_file::read_text(path)?;
    let token = text.trim_end();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::new(Code::OptionInvalid, format!("{} holds no token", path.display()))
            .way_out("write visible ASCII characters into it, without spaces"));
    }
    Ok(token.to_owned())
}

fn only(jobs: &[JobSummary]) -> Result<String> {
    match jobs {
        [job] => Ok(job.id.clone()),
        [] => {
            Err(Error::new(Code::NotFound, "the JobManager has no job").way_out("look again once it has started one"))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|job| job.id.as_str()).collect();
            Err(Error::new(Code::OptionInvalid, format!("there are several jobs: {}", ids.join(", ")))
                .way_out("name one with --job"))
        }
    }
}

/// What the operating system or the TLS library said; the layers above repeat the address only.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use streamkeeper_protocol::rest::JobPhaseView;

    use super::*;

    #[test]
    fn an_address_needs_no_scheme_and_nothing_but_http() {
        for (address, url) in [
            ("127.0.0.1:8081", "http://127.0.0.1:8081/"),
            ("https://streams.example.com/sk/", "https://streams.example.com/sk/"),
            ("[::1]:8081", "http://[::1]:8081/"),
        ] {
            assert_eq!(parse(address).unwrap().as_str(), url);
        }
        for wrong in ["", "ftp://a", "http://", "a b:1"] {
            assert_eq!(parse(wrong).unwrap_err().code, Code::OptionInvalid, "{wrong}");
        }
    }

    #[test]
    fn a_job_is_named_only_where_there_are_several() {
        let job = |id: &str| JobSummary {
            id: id.to_owned(),
            namespace: "default".to_owned(),
            name: id.to_owned(),
            phase: JobPhaseView::Running,
            parallelism: 1,
        };
        assert_eq!(only(&[job("default.a")]).unwrap(), "default.a");
        assert_eq!(only(&[]).unwrap_err().code, Code::NotFound);
        let several = only(&[job("default.a"), job("default.b")]).unwrap_err();
        assert!(several.cause.contains("default.a, default.b") && several.way_out.unwrap().contains("--job"));
    }
}
