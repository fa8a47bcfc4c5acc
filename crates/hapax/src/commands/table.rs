//! Plain columns: names over values, numbers to the right, no borders.

use std::fmt;

/// Rows under headings.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|at| self.rows.iter().map(|row| cell(row, at).chars().count()).max().unwrap_or(0))
            .collect();
        let numeric: Vec<bool> =
            (0..columns).map(|at| self.rows.iter().skip(1).all(|row| is_number(&cell(row, at)))).collect();
        for row in &self.rows {
            let mut line = String::new();
            for at in 0..columns {
                let pad = " ".repeat(widths[at] - cell(row, at).chars().count());
                let (before, after) = if numeric[at] { (pad.as_str(), "") } else { ("", pad.as_str()) };
                line.push_str(&format!("{before}{}{after}  ", cell(row, at)));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    text == "-" || text.trim_start_matches(['-', '+']).chars().all(|c| c.is_ascii_digit() || ",.%".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: words stand left, numbers right, nothing trails. Method: one table of both.
    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::new(&["name", "rows"]);
        table.row(vec!["guarded".into(), "1,000".into()]);
        table.row(vec!["x".into(), "7".into()]);
        assert_eq!(table.to_string(), "name      rows\nguarded  1,000\nx            7\n");
    }
}
