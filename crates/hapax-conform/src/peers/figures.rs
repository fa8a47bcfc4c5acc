//! Figures of several rounds, and the table that is made of them.

use std::fmt::Write as _;

use super::contestant::Who;

/// What was measured, in the order in which it first was.
#[derive(Debug, Default)]
pub struct Figures {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    unit: Unit,
    seen: Vec<(Who, Vec<f64>)>,
}

/// How a figure is written, and which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Records per second.
    PerSecond,
    /// Milliseconds.
    Milliseconds,
    /// MiB of memory.
    Mebibytes,
}

impl Figures {
    /// Adds one figure of one round.
    pub fn add(&mut self, name: &str, unit: Unit, who: Who, figure: f64) {
        let known = self.rows.iter().position(|row| row.name == name);
        let at = known.unwrap_or_else(|| {
            self.rows.push(Row { name: name.to_owned(), unit, seen: Vec::new() });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        match row.seen.iter_mut().find(|(one, _)| *one == who) {
            Some((_, figures)) => figures.push(figure),
            None => row.seen.push((who, vec![figure])),
        }
    }

    /// A table in Markdown: medians with the least and the greatest, and our ratio to Kafka's that syncs, round by round.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from("| what |");
        Who::ALL.iter().for_each(|who| write!(text, " {} |", who.title()).expect("a string takes text"));
        text.push_str(" embedded against Kafka with fsync |\n|---|");
        text.push_str(&"---|".repeat(Who::ALL.len() + 1));
        text.push('\n');
        for row in &self.rows {
            write!(text, "| {} |", row.name).expect("a string takes text");
            for who in Who::ALL {
                let cell = row.of(who).map_or_else(|| "–".to_owned(), |figures| row.unit.cell(figures));
                write!(text, " {cell} |").expect("a string takes text");
            }
            let ratio = row.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("**{ratio:.2}**"));
            writeln!(text, " {ratio} |").expect("a string takes text");
        }
        text
    }
}

impl Row {
    fn of(&self, who: Who) -> Option<&[f64]> {
        self.seen.iter().find(|(one, _)| *one == who).map(|(_, figures)| figures.as_slice())
    }

    /// The median of the rounds' ratios: what disturbs a round disturbs both sides of it.
    fn ratio(&self) -> Option<f64> {
        let (ours, theirs) = (self.of(Who::Embedded)?, self.of(Who::KafkaSynced)?);
        Some(median(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>()))
    }
}

impl Unit {
    fn number(self, figure: f64) -> String {
        match self {
            Self::PerSecond if figure >= 1e6 => format!("{:.2} M/s", figure / 1e6),
            Self::PerSecond => format!("{:.0} K/s", figure / 1e3),
            Self::Milliseconds => format!("{figure:.2} ms"),
            Self::Mebibytes => format!("{figure:.0} MiB"),
        }
    }

    fn cell(self, figures: &[f64]) -> String {
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = self.number(median(figures));
        match figures {
            [_] => middle,
            _ => format!("{middle} ({} – {})", self.number(least), self.number(greatest)),
        }
    }
}

/// The middle one; of an even number the mean of the two.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a ratio is that of the rounds, not of the medians. Method: two rounds of which one was slow for both.
    #[test]
    fn the_table_has_medians_and_ratios_of_rounds() {
        let mut figures = Figures::default();
        for (ours, theirs) in [(100_000.0, 50_000.0), (1_000_000.0, 500_000.0), (300_000.0, 300_000.0)] {
            figures.add("produce", Unit::PerSecond, Who::Embedded, ours);
            figures.add("produce", Unit::PerSecond, Who::KafkaSynced, theirs);
        }
        let table = figures.table();
        let wanted = "| produce | 300 K/s (100 K/s – 1.00 M/s) | – | 300 K/s (50 K/s – 500 K/s) | – | **2.00** |";
        assert_eq!(table.lines().nth(2), Some(wanted), "{table}");
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[4.0, 1.0]), 2.5);
    }
}
