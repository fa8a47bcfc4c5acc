//! Rows on their way into the table in the first try: reduced, sorted, many per statement, no savepoint. Inside a
//! transaction that the caller opened.
//!
//! Not here: the second try (`slow`), BEGIN, COMMIT, progress, letters.

use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_sql::mysql::Session;

use super::chunk::{Place, Shapes, Waiting, book};
use crate::table::tries::{Outcome, Trouble};

/// Writes all rows of `order`.
pub(super) async fn write_fast(session: &mut Session, place: &Place<'_>, order: &[usize]) -> Result<Outcome, Trouble> {
    let mut fast =
        Fast { place, shapes: Shapes::default(), written: Written::default(), sent: 0, middle: order.len() / 2 };
    let mut waiting = Waiting::new(0);
    for event in order {
        // Never put together by their shape: rows are locked in the order of their keys by every lane; else two lanes
        // meet in a deadlock.
        let shape = fast.shapes.of(place, *event)?;
        if shape != waiting.shape {
            fast.send_all(session, &mut waiting).await?;
            waiting = Waiting::new(shape);
        }
        waiting.push(place, fast.shapes.get(shape), *event)?;
        if waiting.is_full(place, fast.shapes.get(shape)) {
            fast.send(session, &mut waiting).await?;
        }
    }
    fast.send_all(session, &mut waiting).await?;
    Ok(Outcome { written: fast.written, refused: Vec::new() })
}

struct Fast<'a> {
    place: &'a Place<'a>,
    shapes: Shapes,
    written: Written,
    sent: usize,
    middle: usize,
}

impl Fast<'_> {
    async fn send_all(&mut self, session: &mut Session, waiting: &mut Waiting) -> Result<(), Trouble> {
        while !waiting.is_empty() {
            self.send(session, waiting).await?;
        }
        Ok(())
    }

    async fn send(&mut self, session: &mut Session, waiting: &mut Waiting) -> Result<(), Trouble> {
        let (place, shaped) = (self.place, self.shapes.get(waiting.shape));
        let (rows, values) = waiting.take(place, shaped);
        if (self.sent..self.sent + rows).contains(&self.middle) {
            point("sql.data_middle");
        }
        self.sent += rows;
        let done = place.run(session, shaped, rows, values).await?;
        let mapping = place.rows.mapping;
        book(&mut self.written, mapping.mode, &mapping.table, done).map_err(|_| Trouble::Refused)
    }
}
