//! Reading the records of one split of a line format through a buffer.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::Path,
};

use arrow::array::ArrayRef;
use flate2::read::MultiGzDecoder;
use streamkeeper_types::{Code, Error, Result, size};

use super::{
    file_changed, source_failed,
    split::{FileSplit, Position},
};
use crate::formats::{BadRecord, Decoder, End, Format, Input, file_corrupt};

/// Bytes read at once. Fits a core's cache together with the columns made from it.
const BUFFER: usize = 512 << 10;

/// Records of a split, from its position on.
pub(super) struct LineStream {
    source: Source,
    decoder: Box<dyn Decoder>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read and not decoded.
    unread: Range<usize>,
    /// Where `unread` begins in the file, or in the content of a compressed one.
    position: u64,
    /// No record begins at or behind this; the end of the split.
    stop: u64,
    end: End,
    /// Bytes; a longer record is taken for a fault of the file.
    longest_record: usize,
}

enum Source {
    Plain(io::Take<File>),
    Compressed(Box<MultiGzDecoder<File>>),
}

/// What one step of reading gave.
pub(super) struct Step<'a> {
    /// Columns of good records; may be empty.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) bad: Vec<BadRecord>,
    /// The bytes that were decoded, into which `bad` points, and where they begin in the file.
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
}

impl LineStream {
    /// Opens the file and goes to the split's position.
    ///
    /// # Errors
    /// `FILE_CHANGED` if the file is gone or is not the one that the position belongs to, else as [`Self::next`].
    pub(super) fn open(
        split: &FileSplit,
        format: &Format,
        longest_record: usize,
        decoder: Box<dyn Decoder>,
    ) -> Result<Self> {
        let path = Path::new(&split.path);
        let file = open_file(split)?;
        let compressed = split.is_compressed();
        let mut stream = Self {
            source: if compressed {
                Source::Compressed(Box::new(MultiGzDecoder::new(file)))
            } else {
                Source::Plain(file.take(0))
            },
            decoder,
            buffer: vec![0; BUFFER],
            unread: 0..0,
            position: 0,
            stop: if compressed { u64::MAX } else { split.end },
            end: End::MoreFollows,
            longest_record,
        };
        match split.position {
            Position::Start if split.start == 0 => {
                stream.seek(path, 0, split.size)?;
                stream.fill(path)?;
                if stream.bytes().starts_with(b"\xef\xbb\xbf") {
                    stream.consume(3);
                }
                if format.has_header() {
                    stream.skip_line(path)?;
                }
            }
            // The line that contains the byte before the start belongs to the split before.
            Position::Start => {
                stream.seek(path, split.start - 1, split.size)?;
                stream.skip_line(path)?;
            }
            Position::Byte(0) => stream.seek(path, 0, split.size)?,
            Position::Byte(byte) => {
                stream.seek(path, byte - 1, split.size)?;
                stream.fill(path)?;
                let is_at_end = !compressed && byte >= split.size;
                if stream.bytes().first() != Some(&b'\n') && !is_at_end {
                    return Err(file_changed(path, format!("no record begins at byte {byte} any more")));
                }
                stream.consume(1.min(stream.unread.len()));
            }
            Position::Rows(_) => return Err(Error::internal("a line format with a position in rows")),
        }
        Ok(stream)
    }

    /// Where the next record begins.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Reads records; `None` at the end of the split. A step may be without rows.
    ///
    /// # Errors
    /// `SOURCE_FAILED`, `FILE_CORRUPT`, or `RECORD_INVALID` for a record without end.
    pub(super) fn next(&mut self, path: &Path, max_rows: usize) -> Result<Option<Step<'_>>> {
        loop {
            if self.position >= self.stop || (self.unread.is_empty() && self.end == End::OfFile) {
                return Ok(None);
            }
            let stop = usize::try_from(self.stop - self.position).unwrap_or(usize::MAX);
            let range = self.unread.clone();
            let input = Input { bytes: &self.buffer[range.clone()], stop, end: self.end, max_rows };
            let decoded = self.decoder.decode(input)?;
            if decoded.consumed == 0 {
                if self.end == End::OfFile {
                    return Ok(None);
                }
                self.fill(path)?;
                continue;
            }
            let offset = self.position;
            self.consume(decoded.consumed);
            let bytes = &self.buffer[range.start..range.start + decoded.consumed];
            return Ok(Some(Step { columns: decoded.columns, bad: decoded.bad, bytes, offset }));
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.unread.clone()]
    }

    fn consume(&mut self, bytes: usize) {
        self.unread.start += bytes;
        self.position += bytes as u64;
    }

    /// Goes to a byte of the file, or of a compressed file's content.
    fn seek(&mut self, path: &Path, to: u64, size: u64) -> Result<()> {
        match &mut self.source {
            Source::Plain(file) => {
                file.get_mut().seek(SeekFrom::Start(to)).map_err(|e| source_failed(path, e))?;
                file.set_limit(size.saturating_sub(to));
            }
            Source::Compressed(file) => {
                let skipped = io::copy(&mut file.by_ref().take(to), &mut io::sink());
                if skipped.map_err(|e| unpacking_failed(path, &e))? < to {
                    return Err(file_changed(path, "it has fewer bytes than were read before"));
                }
            }
        }
        self.position = to;
        Ok(())
    }

    /// Reads more behind what is unread.
    fn fill(&mut self, path: &Path) -> Result<()> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.unread.end == self.buffer.len() {
            if self.unread.end >= self.longest_record {
                let size = size::display(self.longest_record as u64);
                let cause = format!("{}: the record at byte {} is longer than {size}", path.display(), self.position);
                return Err(Error::new(Code::RecordInvalid, cause).way_out(
                    "look for a quote that is not closed or a file that is not of this format, or raise \
                     'source.max-record-size'",
                ));
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        while self.unread.end < self.buffer.len() {
            let free = &mut self.buffer[self.unread.end..];
            let (read, fault): (_, fn(&Path, &io::Error) -> Error) = match &mut self.source {
                Source::Plain(file) => (file.read(free), |path, e| source_failed(path, e)),
                Source::Compressed(file) => (file.read(free), unpacking_failed),
            };
            match read {
                Ok(0) => {
                    self.end = End::OfFile;
                    break;
                }
                Ok(bytes) => self.unread.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fault(path, &error)),
            }
        }
        Ok(())
    }

    /// Goes behind the next line break.
    fn skip_line(&mut self, path: &Path) -> Result<()> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', self.bytes()) {
                self.consume(length + 1);
                return Ok(());
            }
            self.consume(self.unread.len());
            if self.end == End::OfFile || self.position >= self.stop {
                return Ok(());
            }
            self.fill(path)?;
        }
    }
}

/// A compressed file that does not end where it should, or is no such file, tells so by these kinds.
fn unpacking_failed(path: &Path, error: &io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => file_corrupt(path, "the compressed file ends in the middle"),
        InvalidData | InvalidInput => file_corrupt(path, error),
        _ => source_failed(path, error),
    }
}

/// Opens the file of a split, which must have at least the size that it had when it was found.
pub(super) fn open_file(split: &FileSplit) -> Result<File> {
    let path = Path::new(&split.path);
    let file = File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => file_changed(path, "it is gone, and its rows were not all read"),
        _ => source_failed(path, e),
    })?;
    let size = file.metadata().map_err(|e| source_failed(path, e))?.len();
    if size < split.size {
        let why = format!("it had {} bytes when it was found and has {size} now", split.size);
        return Err(file_changed(path, why));
    }
    Ok(file)
}
