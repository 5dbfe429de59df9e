//! Uploads: in one request, or in parts.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{
    Attribute, Attributes, CopyMode, CopyOptions, PutMode, PutMultipartOptions, PutOptions, multipart::PartId,
    path::Path,
};
use streamkeeper_types::Error;
use tokio::sync::OwnedSemaphorePermit;

use super::Objects;
use crate::{
    PutOutcome,
    remote::{
        content::Content,
        failure::Failure,
        tries::{Tries, repeat},
    },
};

/// A conditional upload takes one request up to here, since only a single request can be conditional everywhere.
const CREATE_IN_ONE: u64 = 128 << 20;

/// Parts of one object on their way at the same time.
const PARTS_AT_ONCE: usize = 4;

/// S3's limit is 10,000.
const MOST_PARTS: u64 = 9_000;

/// Name of the metadata that tells who wrote an object. A valid identifier, as Azure demands.
pub(super) const WRITER: &str = "skwriter";

impl Objects {
    /// Uploads unless an object is there. Each upload carries a random writer, so that an answer that got lost is
    /// decided by reading whose object lies there.
    pub(super) async fn create(&self, key: &Path, content: &Content) -> Result<PutOutcome, Failure> {
        if content.size() > CREATE_IN_ONE {
            return self.create_large(key, content).await;
        }
        let (bytes, _permit) = self.load(content, 0..content.size()).await?;
        let writer = random_name();
        let mut tries = Tries::new(&self.options, content.size());
        let mut unclear = false;
        loop {
            let put = tries.run(self.put_once(key, bytes.clone(), PutMode::Create, &writer)).await;
            let failure = match put {
                Ok(()) => return Ok(PutOutcome::Done),
                Err(Failure::Exists(_)) if !unclear => return Ok(PutOutcome::Exists),
                Err(failure) => failure,
            };
            unclear |= matches!(failure, Failure::Unclear(_));
            let error = match failure {
                Failure::Exists(error) | Failure::Conflict(error) => {
                    match tries.run(self.writer_of(key)).await {
                        Ok(Some(found)) if found == writer => return Ok(PutOutcome::Done),
                        Ok(Some(_)) => return Ok(PutOutcome::Exists),
                        // It was deleted again, or the write that was under way failed.
                        Ok(None) => {}
                        Err(_) => unclear = true,
                    }
                    error
                }
                Failure::Unclear(error) | Failure::Busy(error) => error,
                refused if unclear => return Err(Failure::Unclear(refused.error().clone())),
                refused => return Err(refused),
            };
            if !tries.again().await {
                return Err(if unclear { Failure::Unclear(error) } else { Failure::Busy(error) });
            }
        }
    }

    /// Uploads under a temporary key in parts, then copies on condition. The copy carries no writer, so that it is not
    /// tried again when its answer is lost.
    async fn create_large(&self, key: &Path, content: &Content) -> Result<PutOutcome, Failure> {
        if self.head(key).await?.is_some() {
            return Ok(PutOutcome::Exists);
        }
        let temporary = self.temporary();
        self.upload_parts(&temporary, content).await.map_err(Failure::without_effect)?;
        let mut tries = Tries::new(&self.options, content.size());
        let copied = loop {
            let options = CopyOptions::new().with_mode(CopyMode::Create);
            let copy = async { self.client.copy_opts(&temporary, key, options).await.map_err(|e| self.failure(&e)) };
            match tries.run(copy).await {
                Ok(()) => break Ok(PutOutcome::Done),
                Err(Failure::Exists(_)) => break Ok(PutOutcome::Exists),
                Err(Failure::Conflict(error)) => match tries.run(self.writer_of(key)).await {
                    Ok(Some(_)) => break Ok(PutOutcome::Exists),
                    _ if !tries.again().await => break Err(Failure::Busy(error)),
                    _ => {}
                },
                Err(Failure::Busy(_)) if tries.again().await => {}
                Err(failure) => break Err(failure),
            }
        };
        self.discard(&temporary).await;
        copied
    }

    /// Uploads and replaces what is there.
    pub(super) async fn overwrite(&self, key: &Path, content: &Content) -> Result<PutOutcome, Failure> {
        let size = content.size();
        if size > 2 * self.options.part_size {
            self.upload_parts(key, content).await?;
            return Ok(PutOutcome::Done);
        }
        let (bytes, _permit) = self.load(content, 0..size).await?;
        let writer = random_name();
        repeat(&self.options, size, || self.put_once(key, bytes.clone(), PutMode::Overwrite, &writer)).await?;
        Ok(PutOutcome::Done)
    }

    async fn put_once(&self, key: &Path, bytes: Bytes, mode: PutMode, writer: &str) -> Result<(), Failure> {
        let options = PutOptions { mode, attributes: written_by(writer), ..PutOptions::default() };
        self.client.put_opts(key, bytes.into(), options).await.map(drop).map_err(|error| self.failure(&error))
    }

    /// Uploads in parts; on failure the parts that are there are discarded.
    async fn upload_parts(&self, key: &Path, content: &Content) -> Result<(), Failure> {
        let size = content.size();
        let part = self.options.part_size.max(size.div_ceil(MOST_PARTS));
        let writer = random_name();
        let id = repeat(&self.options, 0, || self.start_parts(key, &writer)).await.map_err(Failure::without_effect)?;
        let parts = stream::iter((0..size.div_ceil(part)).map(|index| {
            let range = index * part..size.min((index + 1) * part);
            self.upload_part(key, &id, index, content, range)
        }));
        let parts: Result<Vec<PartId>, Failure> = parts.buffered(PARTS_AT_ONCE).try_collect().await;
        let done = match parts {
            Ok(parts) => self.complete(key, &id, &parts, &writer).await,
            Err(failure) => Err(failure.without_effect()),
        };
        if matches!(done, Err(Failure::Busy(_) | Failure::Refused(_) | Failure::NotFound(_))) {
            // What this leaves, the bucket's rule for incomplete uploads removes.
            let abort = async { self.client.abort_multipart(key, &id).await.map_err(|error| self.failure(&error)) };
            let _ = Tries::new(&self.options, 0).run(abort).await;
        }
        done
    }

    async fn start_parts(&self, key: &Path, writer: &str) -> Result<String, Failure> {
        let attributes = if self.service.part_metadata { written_by(writer) } else { Attributes::new() };
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        self.client.create_multipart_opts(key, options).await.map_err(|error| self.failure(&error))
    }

    async fn upload_part(
        &self,
        key: &Path,
        id: &String,
        index: u64,
        content: &Content,
        range: Range<u64>,
    ) -> Result<PartId, Failure> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let (bytes, _permit) = self.load(content, range).await?;
        repeat(&self.options, bytes.len() as u64, || async {
            let part = self.client.put_part(key, id, index, bytes.clone().into());
            part.await.map_err(|error| self.failure(&error))
        })
        .await
    }

    /// Makes the parts one object. When an answer got lost, a further try finds the upload gone: then the writer of the
    /// object tells.
    async fn complete(&self, key: &Path, id: &String, parts: &[PartId], writer: &str) -> Result<(), Failure> {
        let completed = repeat(&self.options, 0, || async {
            let complete = self.client.complete_multipart(key, id, parts.to_vec());
            complete.await.map(drop).map_err(|error| self.failure(&error))
        });
        match completed.await {
            Err(Failure::NotFound(error)) => match Tries::new(&self.options, 0).run(self.writer_of(key)).await {
                Ok(Some(found)) if found == writer => Ok(()),
                _ => Err(Failure::Unclear(error)),
            },
            done => done,
        }
    }

    /// Bytes `range` of the content. Those of files count against the memory for uploads.
    async fn load(
        &self,
        content: &Content,
        range: Range<u64>,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Failure> {
        let permit = match content {
            Content::Bytes(_) => None,
            Content::File { .. } => {
                let permits = Self::permits(range.end - range.start);
                let acquired = Arc::clone(&self.upload_memory).acquire_many_owned(permits).await;
                // The semaphore is never closed.
                Some(acquired.map_err(|error| Failure::Refused(Error::internal(error.to_string())))?)
            }
        };
        Ok((content.read(range)?, permit))
    }

    /// Who wrote the object; `None` if there is none. One without writer was not written by us.
    async fn writer_of(&self, key: &Path) -> Result<Option<String>, Failure> {
        match self.head_once(key).await {
            Ok(found) => {
                Ok(Some(found.attributes.get(&writer_key()).map_or_else(String::new, |w| w.as_ref().to_owned())))
            }
            Err(Failure::NotFound(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

fn writer_key() -> Attribute {
    Attribute::Metadata(WRITER.into())
}

fn written_by(writer: &str) -> Attributes {
    Attributes::from_iter([(writer_key(), writer.to_owned())])
}

pub(super) fn random_name() -> String {
    format!("{:032x}", rand::random::<u128>())
}
