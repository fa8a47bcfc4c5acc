//! Rows on their way into the table in the first try: reduced, sorted, many per statement, no savepoint. Inside a
//! transaction that the caller opened.
//!
//! While the server works on a statement, the next one is made. Not here: the second try (`slow`), BEGIN, COMMIT,
//! progress, letters.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use hapax_engine::sink::Written;
use hapax_sql::mysql::Session;

use super::chunk::{Place, Shapes};
use super::plan::Plan;
use crate::table::booked::book;
use crate::table::middle::Middle;
use crate::table::tries::{Outcome, Trouble};

/// Writes all rows of `order`.
pub(super) async fn write_fast(session: &mut Session, place: &Place<'_>, order: &[usize]) -> Result<Outcome, Trouble> {
    let mapping = place.rows.mapping;
    let mut shapes = Shapes::default();
    let mut plan = Plan::new(place, &mut shapes, order);
    let mut written = Written::default();
    let mut middle = Middle::of(order.len());
    let mut next = plan.next();
    while let Some(ready) = next? {
        middle.before(ready.rows);
        let mut running = pin!(place.run(session, ready));
        // The first poll sends it.
        let answer = poll_fn(|context| Poll::Ready(running.as_mut().poll(context))).await;
        next = plan.next();
        let done = match answer {
            Poll::Ready(done) => done,
            Poll::Pending => running.await,
        };
        let done = done.inspect_err(|_| middle.stopped())?;
        book(&mut written, mapping.mode, &mapping.table, done).map_err(|_| Trouble::Refused)?;
    }
    Ok(Outcome { written, ..Outcome::default() })
}
