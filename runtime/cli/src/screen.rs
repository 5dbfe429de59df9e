//! What differs between a terminal and a file: colours, and pictures that replace each other.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use comfy_table::{Attribute, Cell, Color};
use streamkeeper_types::{Fault, Result};

use crate::{args::Output, report};

/// What a word means for whom it concerns; shown as a colour on a terminal only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    /// Changing, or worth a look.
    Pending,
    Bad,
    Plain,
}

/// A text in the tone's colour, on standard output.
#[must_use]
pub fn paint(text: &str, tone: Tone) -> String {
    let code = match tone {
        Tone::Good => "32",
        Tone::Pending => "33",
        Tone::Bad => "1;31",
        Tone::Plain => return text.to_owned(),
    };
    if is_coloured() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// A cell of a table in the tone's colour.
#[must_use]
pub fn cell(text: impl Into<String>, tone: Tone) -> Cell {
    let cell = Cell::new_owned(text.into());
    if !is_coloured() {
        return cell;
    }
    match tone {
        Tone::Good => cell.fg(Color::Green),
        Tone::Pending => cell.fg(Color::Yellow),
        Tone::Bad => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        Tone::Plain => cell,
    }
}

/// <https://no-color.org>
fn is_coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

/// Whether a picture is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    GoOn,
    End,
}

/// A text for a person, and whether there will be another.
pub struct Picture {
    pub text: String,
    pub more: More,
}

/// How long a watched JobManager may be silent: another one takes over within seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Shows pictures every `interval` until the last; as text on a terminal each replaces the one before. The first look must
/// succeed; later ones may fail for a while, since another JobManager may just be taking over.
///
/// # Errors
/// That of a look that counts.
pub fn watch(output: Output, interval: Duration, mut look: impl FnMut() -> Result<Picture>) -> Result<()> {
    let redraws = output != Output::Json && std::io::stdout().is_terminal();
    let mut picture = look()?;
    if redraws {
        report::line("\x1b[2J");
    }
    loop {
        let text = if redraws { redrawn(&picture.text) } else { picture.text };
        report::line(&text);
        if picture.more == More::End {
            return Ok(());
        }
        picture = next(interval, &mut look)?;
    }
}

/// The next picture that there is; says on standard error why one is missing.
fn next(interval: Duration, look: &mut impl FnMut() -> Result<Picture>) -> Result<Picture> {
    let begin = Instant::now();
    loop {
        std::thread::sleep(interval);
        match look() {
            Ok(picture) => return Ok(picture),
            Err(error) if error.fault() != Fault::External || begin.elapsed() >= PATIENCE => return Err(error),
            Err(error) => eprintln!("{}; looking again", error.cause),
        }
    }
}

/// Line by line, so that nothing flickers: to the top, clear the rest of each line, then what is below.
fn redrawn(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{line}\x1b[K")).collect();
    format!("\x1b[H{}\x1b[J", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_leaves_nothing_of_the_one_before() {
        assert_eq!(redrawn("a\nbc\n"), "\x1b[Ha\x1b[K\nbc\x1b[K\x1b[J");
    }
}
