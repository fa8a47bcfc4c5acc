//! The fault point in the middle of an epoch's rows. Pure, and empty without the feature `fault`.

use hapax_model::fault::point;

/// Passed once by every epoch that writes rows: before the one in the middle is sent, or where a refusal ends the writing
/// before that. Else an epoch whose first half holds a bad row would never pass, and nobody could wait for it.
#[derive(Debug)]
pub(crate) struct Middle {
    /// Rows until then; none when it is behind.
    left: Option<usize>,
}

impl Middle {
    pub(crate) const fn of(rows: usize) -> Self {
        Self { left: Some(rows / 2) }
    }

    /// So many rows are sent next.
    pub(crate) fn before(&mut self, rows: usize) {
        match self.left {
            Some(left) if left < rows => self.pass(),
            Some(left) => self.left = Some(left - rows),
            None => {}
        }
    }

    /// No more are sent.
    pub(crate) fn stopped(&mut self) {
        if self.left.is_some() {
            self.pass();
        }
    }

    fn pass(&mut self) {
        self.left = None;
        point("sql.data_middle");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every epoch passes once. Method: rows one by one and together, to the end and broken off on either side.
    #[test]
    fn the_middle_is_passed_once() {
        for (pieces, behind_after) in [(&[1, 1, 1, 1][..], 3), (&[4], 1), (&[1, 3], 2), (&[1], 1)] {
            let mut middle = Middle::of(pieces.iter().sum());
            for (sent, rows) in (1..).zip(pieces) {
                middle.before(*rows);
                assert_eq!(middle.left.is_none(), sent >= behind_after, "{pieces:?} after {sent}");
            }
        }
        let mut early = Middle::of(9);
        early.before(2);
        assert!(early.left.is_some());
        early.stopped();
        assert!(early.left.is_none());
    }
}
