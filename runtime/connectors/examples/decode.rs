//! How many rows a second one reader decodes: `decode <csv|json|raw> <file> <column>:<bigint|string|timestamp>…`.
//!
//! Prints rows, bytes and seconds of three passes over the file; take the best.

mod reading;

use std::time::Instant;

use streamkeeper_types::{Error, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [format, path, columns @ ..] = &arguments[..] else {
        return Err(Error::internal("usage: decode <csv|json|raw> <file> <column>:<type>…"));
    };
    let table = reading::table(format, path, columns)?;
    for _ in 0..3 {
        let started = Instant::now();
        let mut rows = 0;
        let bytes = reading::read(&table, |batch| {
            rows += batch.num_rows();
            Ok(())
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let rate = rows as f64 / seconds;
        println!(
            "{rows} rows, {bytes} bytes, {seconds:.3} s: {:.0} thousand rows/s, {:.0} MB/s",
            rate / 1e3,
            bytes as f64 / seconds / 1e6
        );
    }
    Ok(())
}
