//! What `hapax top` draws on a screen of a certain size.
//!
//! Pure. Invariant: no line is wider than the screen and there are no more of them than it has; what is left out is said.

use super::super::super::table::Table;

/// The columns.
pub(super) const HEADINGS: [&str; 10] =
    ["delivery", "state", "read/s", "rows/s", "epochs/s", "position", "behind", "moved", "dead", "worker"];
/// Which columns are left out where the screen is too narrow, in this order.
const LEFT_OUT_FIRST: [usize; 4] = [9, 4, 3, 7];
/// Up to so much of a delivery's name is shown: a lane may be a long path.
const NAME_MOST: usize = 60;
/// Before less than this is left for it, columns are left out.
const NAME_LEAST: usize = 24;
/// The spaces between two columns.
const GAP: usize = 2;

/// The size of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// One picture: a title, a row of cells for each delivery, and what some of them have to say.
pub(super) fn picture(title: &str, rows: &[Vec<String>], notes: &[String], size: Size) -> String {
    let (shown, left_out) = choose_columns(rows, size.columns);
    let name = name_width(rows, &shown, size.columns);
    let mut title = title.to_owned();
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|at| HEADINGS[*at]).collect();
        title.push_str(&format!("   wider: {}", names.join(", ")));
    }
    let mut notes = wrapped(notes, size.columns);
    // Title, blank line, headings; and a blank line before the notes.
    let room = size.rows.saturating_sub(3);
    let for_notes = room.saturating_sub(rows.len() + 1).max(room / 3);
    if notes.len() > for_notes {
        let more = notes.len() + 1 - for_notes.max(1);
        notes.truncate(for_notes.saturating_sub(1));
        notes.push(format!("and {more} more line(s); `hapax stuck` has them"));
    }
    let for_rows = room.saturating_sub(if notes.is_empty() { 0 } else { notes.len() + 1 });
    let whole = rows.len() <= for_rows;
    let fitting = if whole { rows.len() } else { for_rows.saturating_sub(1) };
    let headings: Vec<&str> = shown.iter().map(|at| HEADINGS[*at]).collect();
    let mut table = Table::new(&headings);
    let same = if width_of(rows, 0) > name { same_beginning(rows) } else { 0 };
    for row in &rows[..fitting] {
        let mut cells: Vec<String> = shown.iter().map(|at| row[*at].clone()).collect();
        if same > 0 {
            cells[0] = format!("…{}", &cells[0][same..]);
        }
        cells[0] = narrow(&cells[0], name);
        table.row(cells);
    }
    let mut lines: Vec<String> = vec![title, String::new()];
    lines.extend(table.to_string().lines().map(str::to_owned));
    if !whole {
        lines.push(format!("and {} more; --workflow, --sink and --lane choose", rows.len() - fitting));
    }
    if !notes.is_empty() {
        lines.push(String::new());
        lines.append(&mut notes);
    }
    let cut = |line: String| line.chars().take(size.columns).collect::<String>();
    lines.into_iter().take(size.rows).map(cut).collect::<Vec<_>>().join("\n")
}

/// Which columns fit, and which are left out, each in their order.
fn choose_columns(rows: &[Vec<String>], columns: usize) -> (Vec<usize>, Vec<usize>) {
    let mut shown: Vec<usize> = (0..HEADINGS.len()).collect();
    let widest_name = width_of(rows, 0).min(NAME_LEAST);
    for at in LEFT_OUT_FIRST {
        if widest_name + width_without_name(rows, &shown) <= columns {
            break;
        }
        shown.retain(|column| *column != at);
    }
    let left_out = (0..HEADINGS.len()).filter(|at| !shown.contains(at)).collect();
    (shown, left_out)
}

fn width_of(rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().map(|row| row[column].chars().count());
    cells.chain([HEADINGS[column].len()]).max().unwrap_or_default()
}

fn width_without_name(rows: &[Vec<String>], shown: &[usize]) -> usize {
    shown.iter().skip(1).map(|column| GAP + width_of(rows, *column)).sum()
}

/// How many bytes of all names are the same, up to the last mark between words: who sees many lanes wants what tells them apart.
fn same_beginning(rows: &[Vec<String>]) -> usize {
    let [first, others @ ..] = rows else { return 0 };
    let first = &first[0];
    let same_as = |other: &str| first.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let same = others.iter().map(|other| same_as(&other[0])).min().unwrap_or(0);
    first.as_bytes()[..same].iter().rposition(|byte| b"/-_.".contains(byte)).map_or(0, |at| at + 1)
}

/// How much of the names fits.
fn name_width(rows: &[Vec<String>], shown: &[usize], columns: usize) -> usize {
    columns.saturating_sub(width_without_name(rows, shown)).clamp(HEADINGS[0].len(), NAME_MOST)
}

/// The beginning and the end of a long name.
fn narrow(name: &str, characters: usize) -> String {
    let length = name.chars().count();
    if length <= characters {
        return name.to_owned();
    }
    // The end tells files apart.
    let begin = characters.saturating_sub(1) / 3;
    let end = characters.saturating_sub(1) - begin;
    name.chars().take(begin).chain(['…']).chain(name.chars().skip(length - end)).collect()
}

/// Texts as lines of the screen, broken between words where that is possible.
fn wrapped(texts: &[String], columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for text in texts {
        let mut line = String::new();
        for word in text.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            let length = line.chars().count();
            if length > 0 && length + 1 + word.len() > columns {
                lines.push(std::mem::take(&mut line));
            } else if length > 0 {
                line.push(' ');
            }
            // A path may be longer than a line.
            while word.len() > columns {
                lines.push(word.drain(..columns).collect());
            }
            line.extend(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(lane: &str) -> Vec<String> {
        let cells = [
            "running",
            "12345",
            "12345",
            "12",
            "1234567890",
            "1234567890",
            "12s",
            "3",
            "hapax 0.1.0, pid 12345 on shop",
        ];
        [lane].iter().chain(&cells).map(ToString::to_string).collect()
    }

    /// Goal: nothing is wider or longer than the screen, whatever is shown, and what matters most stays. Method: screens of many
    /// sizes; one delivery, many, and notes of one long word and of many short ones.
    #[test]
    fn no_line_is_wider_than_the_screen() {
        let lane = |n: usize| delivery(&format!("orders/sqlite//srv/a/very/long/path/to/the/orders-of-{n:04}.jsonl"));
        let notes = ["x".repeat(300), "HX4001 the target is away ".repeat(20)];
        for (rows, columns) in [(24, 80), (30, 120), (24, 60), (50, 250), (2, 2), (5, 10)] {
            for (deliveries, noted) in [(1, 0), (1, 2), (200, 0), (200, 2)] {
                let all: Vec<Vec<String>> = (0..deliveries).map(lane).collect();
                let picture = picture("hapax top", &all, &notes[..noted], Size { rows, columns });
                let lines: Vec<&str> = picture.lines().collect();
                assert!(lines.len() <= rows, "{rows} x {columns}: {picture}");
                assert!(lines.iter().all(|line| line.chars().count() <= columns), "{rows} x {columns}: {picture}");
                if rows >= 24 && columns >= 80 {
                    let words = ["state", "read/s", "behind", "dead", "0000.jsonl", "running"];
                    assert!(words.iter().all(|word| picture.contains(word)), "{rows} x {columns}: {picture}");
                    assert_eq!(picture.contains("more; --workflow"), deliveries == 200, "{picture}");
                    assert_eq!(picture.contains("HX4001"), noted == 2, "{picture}");
                    assert_eq!(picture.contains("   wider: "), columns <= 120, "{picture}");
                }
            }
        }
    }

    /// Goal: what is left out is named, and a screen that is wide enough leaves nothing out. Method: 80 columns and 250.
    #[test]
    fn columns_that_do_not_fit_are_named() {
        let rows = [delivery("orders/sqlite/orders.jsonl")];
        let at = |columns| picture("hapax top", &rows, &[], Size { rows: 24, columns });
        assert!(at(80).contains("   wider: ") && at(80).contains("worker"), "{}", at(80));
        assert!(!at(80).contains("pid 12345"), "{}", at(80));
        assert!(!at(250).contains("wider: ") && at(250).contains("pid 12345 on shop"), "{}", at(250));
    }

    /// Goal: a long name keeps both its ends and fits its column.
    #[test]
    fn a_long_name_keeps_its_ends() {
        assert_eq!(narrow("orders/erp/0", 36), "orders/erp/0");
        let short = narrow("orders/sqlite//srv/a/very/long/path/to/orders.jsonl", 36);
        assert_eq!(short.chars().count(), 36);
        assert!(short.starts_with("orders/sql") && short.ends_with("orders.jsonl"), "{short}");
    }
}
