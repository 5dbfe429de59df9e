//! Batches as bytes, and bytes that are no batches.

use arrow::{array::RecordBatch, buffer::Buffer};
use proptest::prelude::*;
use streamkeeper_network::{BatchDecoder, BatchEncoder, Body, Compression};

use crate::batches::{numbers, wide};

const LARGEST: usize = 1 << 20;

fn decode(decoder: &mut BatchDecoder, body: Body) -> RecordBatch {
    let plain = decoder.uncompress(Buffer::from(body.bytes), body.flags).unwrap();
    assert_eq!(plain.len(), body.uncompressed, "both ends count the same bytes");
    decoder.decode(&plain).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_slice_of_every_kind_of_column_reads_back(
        rows in 1usize..300,
        cuts in prop::collection::vec((0usize..300, 1usize..300), 1..6),
        lz4: bool,
    ) {
        let whole = wide(rows);
        let mut encoder = BatchEncoder::new(if lz4 { Compression::Lz4 } else { Compression::None });
        let mut decoder = BatchDecoder::new(LARGEST);
        for (start, length) in cuts {
            let start = start % rows;
            let slice = whole.slice(start, length.min(rows - start));
            let compact = BatchEncoder::compact(slice.clone()).unwrap();
            let body = encoder.encode(&compact).unwrap();
            prop_assert_eq!(decode(&mut decoder, body), slice);
        }
    }
}

proptest! {
    #[test]
    fn mutated_bodies_are_read_or_refused_without_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        lz4: bool,
    ) {
        let compression = if lz4 { Compression::Lz4 } else { Compression::None };
        let mut body = BatchEncoder::new(compression).encode(&wide(20)).unwrap();
        for (at, byte) in changes {
            // The metadata in front is where a lie does most.
            let places = if byte % 2 == 0 { body.bytes.len() } else { body.bytes.len().min(3_000) };
            body.bytes[at.index(places)] = byte;
        }
        if let Some(cut) = cut {
            let length = cut.index(body.bytes.len());
            body.bytes.truncate(length);
        }
        let mut decoder = BatchDecoder::new(LARGEST);
        let plain = decoder.uncompress(Buffer::from(body.bytes), body.flags);
        if let Ok(batch) = plain.and_then(|plain| decoder.decode(&plain)) {
            prop_assert!(batch.num_rows() <= 1 << 24);
        }
    }
}

#[test]
fn a_slice_of_views_does_not_ship_the_whole_column() {
    let whole = wide(8_192);
    let views = RecordBatch::try_from_iter([("v", whole.column(1).clone()), ("n", whole.column(10).clone())]).unwrap();
    let slice = BatchEncoder::compact(views.slice(100, 128)).unwrap();
    let body = BatchEncoder::new(Compression::None).encode(&slice).unwrap();
    assert!(body.bytes.len() < 24 << 10, "{} bytes", body.bytes.len());
}

#[test]
fn the_schema_goes_once_and_dictionaries_where_they_change() {
    let mut encoder = BatchEncoder::new(Compression::None);
    let mut decoder = BatchDecoder::new(LARGEST);
    let first = encoder.encode(&wide(10)).unwrap();
    let second = encoder.encode(&wide(10)).unwrap();
    assert!(second.bytes.len() + 1_000 < first.bytes.len());
    assert_eq!(decode(&mut decoder, first), wide(10));
    assert_eq!(decode(&mut decoder, second), wide(10));
    let other = encoder.encode(&numbers(0..5)).unwrap();
    assert_eq!(decode(&mut decoder, other), numbers(0..5));
    let other = encoder.encode(&numbers(5..9)).unwrap();
    assert_eq!(decode(&mut decoder, other), numbers(5..9));
}

#[test]
fn columns_point_into_the_aligned_body() {
    let body = BatchEncoder::new(Compression::None).encode(&numbers(0..1_000)).unwrap();
    let mut aligned = arrow::buffer::MutableBuffer::from_len_zeroed(body.bytes.len());
    aligned.as_slice_mut().copy_from_slice(&body.bytes);
    let buffer = Buffer::from(aligned);
    let batch = BatchDecoder::new(LARGEST).decode(&buffer).unwrap();
    let column = batch.column(0).to_data();
    let values = column.buffers()[0].as_slice().as_ptr_range();
    let whole = buffer.as_slice().as_ptr_range();
    assert!(whole.start <= values.start && values.end <= whole.end, "nothing was copied");
}

#[test]
fn a_compressed_body_that_claims_to_be_huge_takes_no_memory() {
    let mut body = BatchEncoder::new(Compression::Lz4).encode(&numbers(0..10_000)).unwrap();
    assert!(body.flags.is_lz4());
    body.bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(BatchDecoder::new(LARGEST).uncompress(Buffer::from(body.bytes), body.flags).is_err());
}
