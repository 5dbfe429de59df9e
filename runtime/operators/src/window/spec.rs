//! Which windows a time belongs to.
//!
//! Windows are cut into slices that do not overlap: a tumbling window is one slice, a hopping window of size n × slide
//! has n, shared with its neighbours. A slice is named by its end. All times are wall-clock milliseconds.
//!
//! ```text
//! slices   |  s1  |  s2  |  s3  |  s4  |
//! HOP      |<---- w2 --->|             |    size = 2 × slide
//!                 |<---- w3 --->|      |
//! ```

use streamkeeper_types::{Code, Error, Millis, Result};

/// The windows of a TUMBLE or HOP table function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSpec {
    size: Millis,
    slide: Millis,
    offset: Millis,
}

impl WindowSpec {
    /// Windows of `size` that follow each other, shifted by `offset` (which may be negative).
    ///
    /// # Errors
    /// [`Code::SqlInvalid`] unless 0 < `size` and |`offset`| < `size`.
    pub fn tumble(size: Millis, offset: Millis) -> Result<Self> {
        Self::hop(size, size, offset)
    }

    /// Windows of `size`, one beginning every `slide`.
    ///
    /// # Errors
    /// [`Code::SqlInvalid`] unless `size` is a multiple of `slide`, 0 < `slide` and |`offset`| < `slide`.
    pub fn hop(size: Millis, slide: Millis, offset: Millis) -> Result<Self> {
        let invalid = |cause: String| Err(Error::new(Code::SqlInvalid, cause));
        if size <= 0 || slide <= 0 {
            return invalid(format!("window size and slide must be above 0 ms, not {size} ms and {slide} ms"));
        }
        if size % slide != 0 {
            return invalid(format!("window size {size} ms is not a multiple of its slide {slide} ms"));
        }
        if offset.checked_abs().is_none_or(|o| o >= slide) {
            return invalid(format!("window offset {offset} ms must be less than {slide} ms either way"));
        }
        Ok(Self { size, slide, offset })
    }

    #[must_use]
    pub fn size(&self) -> Millis {
        self.size
    }

    /// Length of a slice and distance of window ends.
    #[must_use]
    pub fn slide(&self) -> Millis {
        self.slide
    }

    /// Slices of a window: 1 for TUMBLE.
    #[must_use]
    pub fn slices(&self) -> Millis {
        self.size / self.slide
    }

    /// End (exclusive) of the slice that `time` lies in; also the end of the first window that it belongs to.
    #[must_use]
    pub fn slice_end(&self, time: Millis) -> Millis {
        // The remainder first, so that nothing overflows but ends beyond all time.
        let into = (time.rem_euclid(self.slide) - self.offset).rem_euclid(self.slide);
        time.saturating_add(self.slide - into)
    }

    /// End of the last window that a slice belongs to.
    #[must_use]
    pub fn last_window(&self, slice_end: Millis) -> Millis {
        slice_end.saturating_add(self.size - self.slide)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn windows_begin_at_multiples_of_the_slide_moved_by_the_offset() {
        let minute = WindowSpec::tumble(60_000, 0).unwrap();
        assert_eq!(minute.slice_end(0), 60_000);
        assert_eq!(minute.slice_end(59_999), 60_000);
        assert_eq!(minute.slice_end(-1), 0);
        let shifted = WindowSpec::tumble(60_000, 15_000).unwrap();
        assert_eq!(shifted.slice_end(14_999), 15_000);
        assert_eq!(shifted.slice_end(15_000), 75_000);
        let hop = WindowSpec::hop(60_000, 20_000, -5_000).unwrap();
        assert_eq!(hop.slice_end(14_999), 15_000);
        assert_eq!(hop.last_window(15_000), 55_000);
        assert_eq!(hop.slices(), 3);
    }

    #[test]
    fn sizes_that_do_not_divide_are_refused() {
        for (size, slide, offset) in [(10, 3, 0), (0, 1, 0), (10, 0, 0), (-10, 10, 0), (10, 5, 5), (10, 5, i64::MIN)] {
            assert_eq!(WindowSpec::hop(size, slide, offset).unwrap_err().code, Code::SqlInvalid);
        }
    }

    proptest! {
        #[test]
        fn a_time_lies_in_its_slice(time in -1_000_000_i64..1_000_000, slide in 1_i64..5_000, n in 1_i64..6, shift in 0_i64..5_000) {
            let offset = shift % slide;
            let spec = WindowSpec::hop(slide * n, slide, offset).unwrap();
            let end = spec.slice_end(time);
            prop_assert!(end - slide <= time && time < end);
            prop_assert_eq!((end - offset).rem_euclid(slide), 0);
            prop_assert_eq!((spec.last_window(end) - end) / slide, n - 1);
        }

        #[test]
        fn no_time_overflows(time in any::<i64>()) {
            let spec = WindowSpec::hop(60_000, 10_000, 3).unwrap();
            prop_assert!(spec.last_window(spec.slice_end(time)) >= time);
        }
    }
}
