//! Byte strings by slot in one buffer.

/// One byte string a slot. Replaced and cleared ones leave gaps, which [`Self::compact`] closes.
#[derive(Debug, Default)]
pub(crate) struct ByteStore {
    spans: Vec<Span>,
    data: Vec<u8>,
    garbage: usize,
}

/// Where a slot's string lies: 12 bytes, so that one cache line tells it.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start_low: u32,
    start_high: u32,
    length: u32,
}

impl Span {
    fn new(start: usize, length: usize) -> Self {
        let start = start as u64;
        Self {
            start_low: start as u32,
            start_high: (start >> 32) as u32,
            // Arrow batches carry no longer strings.
            length: u32::try_from(length).unwrap_or(u32::MAX),
        }
    }

    fn start(self) -> usize {
        (u64::from(self.start_high) << 32 | u64::from(self.start_low)) as usize
    }

    fn length(self) -> usize {
        self.length as usize
    }
}

/// How large a part of the buffer the gaps may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// In normal operation.
    Half,
    /// After an eviction, whose point is to need less.
    Eighth,
}

/// Below this much, gaps are not worth a copy.
const SMALL_GARBAGE: usize = 64 << 10;

impl ByteStore {
    /// Adds an empty string for a new slot.
    pub(crate) fn push_slot(&mut self) {
        self.spans.push(Span::default());
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> &[u8] {
        let span = self.spans[slot];
        &self.data[span.start()..span.start() + span.length()]
    }

    pub(crate) fn set(&mut self, slot: usize, value: &[u8]) {
        let old = self.spans[slot];
        if value.len() <= old.length() {
            self.data[old.start()..old.start() + value.len()].copy_from_slice(value);
            self.garbage += old.length() - value.len();
            self.spans[slot] = Span::new(old.start(), value.len());
        } else {
            self.garbage += old.length();
            self.spans[slot] = Span::new(self.data.len(), value.len());
            // Steps of a quarter: doubling would overshoot the budget of a large table.
            if self.data.capacity() - self.data.len() < value.len() {
                self.data.reserve_exact(value.len().max(self.data.len() / 4).max(4096));
            }
            self.data.extend_from_slice(value);
        }
    }

    pub(crate) fn clear(&mut self, slot: usize) {
        self.garbage += self.spans[slot].length();
        self.spans[slot] = Span::default();
    }

    /// Closes the gaps once they are large; amortised constant for each byte written.
    pub(crate) fn compact(&mut self, gaps: Gaps) {
        let tolerated = match gaps {
            Gaps::Half => (self.data.len() / 2).max(SMALL_GARBAGE),
            Gaps::Eighth => self.data.len() / 8,
        };
        if self.garbage <= tolerated {
            return;
        }
        let mut data = Vec::with_capacity(self.data.len() - self.garbage);
        for span in &mut self.spans {
            let moved = Span::new(data.len(), span.length());
            data.extend_from_slice(&self.data[span.start()..span.start() + span.length()]);
            *span = moved;
        }
        self.data = data;
        self.garbage = 0;
    }

    /// Bytes of the buffer, gaps included.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Bytes that each slot costs besides its string.
    pub(crate) const SLOT_BYTES: usize = 12;
}
