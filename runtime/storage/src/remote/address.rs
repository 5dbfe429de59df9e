//! Grammar of the URLs that name remote storage.

use std::fmt;

use streamkeeper_types::{Code, Error, Result};

use crate::path;

/// Where objects lie. Prefixes are object paths without a slash at either end; `""` is the whole bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    S3 {
        bucket: String,
        prefix: String,
    },
    Gcs {
        bucket: String,
        prefix: String,
    },
    Azure {
        container: String,
        /// The name before `.dfs.core.windows.net`; without it the environment names the account.
        account: Option<String>,
        prefix: String,
    },
    Hdfs {
        /// `host:port`, or the name of a name service that Hadoop's configuration explains.
        authority: String,
        prefix: String,
    },
}

const S3_FORM: &str = "s3://<bucket>/<folder>";
const GCS_FORM: &str = "gs://<bucket>/<folder>";
const AZURE_FORM: &str = "abfss://<container>@<account>.dfs.core.windows.net/<folder>, \
    or az://<container>/<folder> with AZURE_STORAGE_ACCOUNT_NAME set";
const HDFS_FORM: &str = "hdfs://<namenode>:<port>/<folder>, or hdfs://<name service>/<folder> with HADOOP_CONF_DIR set";

/// Ends of host names that stand for an Azure storage account.
const AZURE_HOSTS: [&str; 2] = [".dfs.core.windows.net", ".blob.core.windows.net"];

impl Address {
    /// The address that `url` names; `None` if its kind is not one of remote storage.
    ///
    /// # Errors
    /// `JOB_INVALID` with the right form. The text leaves out what may be a secret.
    pub(crate) fn parse(url: &str) -> Result<Option<Self>> {
        let Some((kind, rest)) = url.split_once("://") else { return Ok(None) };
        let form = match kind {
            "s3" | "s3a" => S3_FORM,
            "gs" => GCS_FORM,
            "abfs" | "abfss" | "az" => AZURE_FORM,
            "hdfs" => HDFS_FORM,
            _ => return Ok(None),
        };
        let (authority, folder) = rest.split_once('/').unwrap_or((rest, ""));
        let refuse = |cause: &str| {
            let shown = authority.rsplit('@').next().unwrap_or_default();
            let shown = shown.split(['?', '#']).next().unwrap_or_default();
            Error::new(Code::JobInvalid, format!("storage `{kind}://{shown}/…`: {cause}"))
                .way_out(format!("write {form}"))
        };
        if rest.contains(['?', '#']) {
            return Err(refuse("a storage URL has no `?` and no `#`; credentials come from the environment"));
        }
        if authority.is_empty() {
            return Err(refuse("the name after `://` is missing"));
        }
        let prefix = folder.trim_end_matches('/').to_owned();
        if !prefix.is_empty() && path::check(&prefix).is_err() {
            return Err(refuse("each part of the folder must be non-empty and not start with `.`"));
        }
        if kind != "abfs" && kind != "abfss" && authority.contains('@') {
            return Err(refuse("no name or password may stand before the host; credentials come from the environment"));
        }
        let address = match form {
            S3_FORM => Self::S3 { bucket: bucket(authority).map_err(refuse)?, prefix },
            GCS_FORM => Self::Gcs { bucket: bucket(authority).map_err(refuse)?, prefix },
            AZURE_FORM => {
                let (container, account) = azure(authority).map_err(refuse)?;
                Self::Azure { container, account, prefix }
            }
            _ => Self::Hdfs { authority: name_node(authority).map_err(refuse)?, prefix },
        };
        Ok(Some(address))
    }

    /// The folder `<self>/<folder>`.
    pub(crate) fn below(mut self, folder: &str) -> Self {
        let (Self::S3 { prefix, .. }
        | Self::Gcs { prefix, .. }
        | Self::Azure { prefix, .. }
        | Self::Hdfs { prefix, .. }) = &mut self;
        if !prefix.is_empty() {
            prefix.push('/');
        }
        prefix.push_str(folder);
        self
    }

    pub(crate) fn prefix(&self) -> &str {
        let (Self::S3 { prefix, .. }
        | Self::Gcs { prefix, .. }
        | Self::Azure { prefix, .. }
        | Self::Hdfs { prefix, .. }) = self;
        prefix
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S3 { bucket, .. } => write!(f, "s3://{bucket}")?,
            Self::Gcs { bucket, .. } => write!(f, "gs://{bucket}")?,
            Self::Azure { container, account: None, .. } => write!(f, "az://{container}")?,
            Self::Azure { container, account: Some(account), .. } => {
                write!(f, "abfss://{container}@{account}.dfs.core.windows.net")?;
            }
            Self::Hdfs { authority, .. } => write!(f, "hdfs://{authority}")?,
        }
        match self.prefix() {
            "" => Ok(()),
            prefix => write!(f, "/{prefix}"),
        }
    }
}

/// Buckets and containers: what S3, GCS and Azure all allow, and the `_` of GCS.
fn bucket(name: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_');
    if (3..=63).contains(&name.len()) && name.chars().all(fits) {
        Ok(name.to_owned())
    } else {
        Err("a bucket's name has 3 to 63 lower-case letters, digits, `-`, `.` or `_`, and no port")
    }
}

fn azure(authority: &str) -> Result<(String, Option<String>), &'static str> {
    let Some((container, host)) = authority.split_once('@') else { return Ok((bucket(authority)?, None)) };
    let account = AZURE_HOSTS.iter().find_map(|end| host.strip_suffix(end));
    match account {
        Some(account) if !account.is_empty() && account.chars().all(|c| c.is_ascii_alphanumeric()) => {
            Ok((bucket(container)?, Some(account.to_owned())))
        }
        _ => {
            Err("after `@` stands <account>.dfs.core.windows.net; other endpoints are named by AZURE_STORAGE_ENDPOINT")
        }
    }
}

fn name_node(authority: &str) -> Result<String, &'static str> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if host.is_empty()
        || !host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '[' | ']' | ':'))
    {
        return Err("the NameNode's host name is missing or has odd characters");
    }
    match port.map(str::parse::<u16>) {
        Some(Err(_) | Ok(0)) => Err("the port is no number from 1 to 65535"),
        _ => Ok(authority.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_kind_has_its_form_and_is_shown_in_it() {
        for (url, shown) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            ("s3a://bucket/a/b/", "s3://bucket/a/b"),
            ("gs://my_bucket/a b", "gs://my_bucket/a b"),
            ("az://container/a", "az://container/a"),
            ("abfs://container/a", "az://container/a"),
            ("abfss://c-1@acc1.dfs.core.windows.net/a", "abfss://c-1@acc1.dfs.core.windows.net/a"),
            ("abfss://c-1@acc1.blob.core.windows.net", "abfss://c-1@acc1.dfs.core.windows.net"),
            ("hdfs://nn.example:9000/a", "hdfs://nn.example:9000/a"),
            ("hdfs://nameservice1/a", "hdfs://nameservice1/a"),
        ] {
            assert_eq!(Address::parse(url).unwrap().unwrap().to_string(), shown, "{url}");
        }
        for other in ["/a", "a/b", "file:///a", "ftp://x/y"] {
            assert_eq!(Address::parse(other), Ok(None), "{other}");
        }
        let below = Address::parse("s3://bucket").unwrap().unwrap().below("ns/job");
        assert_eq!(below.to_string(), "s3://bucket/ns/job");
        assert_eq!(below.below("x").prefix(), "ns/job/x");
    }

    #[test]
    fn wrong_urls_are_refused_with_the_form_of_their_kind() {
        for (url, form) in [
            ("s3:///a", S3_FORM),
            ("s3://Bucket/a", S3_FORM),
            ("s3://bucket:9000/a", S3_FORM),
            ("s3://bucket/a//b", S3_FORM),
            ("s3://bucket/../b", S3_FORM),
            ("gs://b/a", GCS_FORM),
            ("abfss://container@account.example.com/a", AZURE_FORM),
            ("abfss://container@.dfs.core.windows.net/a", AZURE_FORM),
            ("az://container@account/a", AZURE_FORM),
            ("hdfs:///a", HDFS_FORM),
            ("hdfs://nn:70000/a", HDFS_FORM),
            ("hdfs://nn:x/a", HDFS_FORM),
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.code, Code::JobInvalid, "{url}");
            assert_eq!(error.way_out, Some(format!("write {form}")), "{url}");
        }
    }

    #[test]
    fn a_secret_in_a_url_is_refused_and_not_repeated() {
        for url in [
            "s3://KEY:SECRET@bucket/a",
            "hdfs://user:SECRET@nn:9000/a",
            "az://container/a?sig=SECRET",
            "abfss://c-1@acc1.dfs.core.windows.net/a?sig=SECRET",
            "gs://bucket?key=SECRET",
            "gs://bucket#SECRET",
        ] {
            let text = Address::parse(url).unwrap_err().to_string();
            assert!(!text.contains("SECRET"), "{text}");
        }
    }
}
