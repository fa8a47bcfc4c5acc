//! A table that is only appended to: its rows are counted against what was delivered into it.

use hapax_engine::books::{Books as _, StoredDelivery};
use hapax_engine::rows::RowReader as _;
use hapax_model::contract::TARGET;
use hapax_model::delivery::Guarantee;
use hapax_model::mode::ProgressPlace;

use super::super::subject::Subject;
use super::chain::Check;
use crate::assemble::{AnyBooks, AnyRows};
use crate::exit::Failure;

/// Counts the rows. `shared`: others write to the table too, so that more rows than were delivered mean nothing.
pub(super) async fn compare(
    subject: &Subject<'_>,
    books: &mut AnyBooks,
    rows: &mut AnyRows,
    shared: bool,
) -> Result<Check, Failure> {
    let Some(before) = expected(subject, books).await? else {
        return Ok(Check::not_compared("target", "the progress vanished while it was looked at"));
    };
    let found = rows.count().await?;
    let after = expected(subject, books).await?.map_or(before.rows, |after| after.rows);
    let whose = match before.deliveries {
        1 => "this delivery".to_owned(),
        several => format!("{several} deliveries"),
    };
    let repeats = match (subject.progress_place(), subject.part.workflow.delivery.guarantee) {
        (ProgressPlace::State, Guarantee::AtMostOnce) => Some("rows of inputs in doubt, or rows of others"),
        (ProgressPlace::State, _) => Some("repeats, which the guarantee allows, or rows of others"),
        (ProgressPlace::Sink, _) => None,
    };
    let why_more = repeats.or(shared.then_some("rows of others"));
    Ok(judge(&Counted { found, before: before.rows, after, whose }, why_more))
}

/// What was counted; the deliveries' rows just before and just after.
struct Counted {
    found: u64,
    before: u64,
    after: u64,
    whose: String,
}

/// `why_more`: what explains more rows than were written, if anything does.
fn judge(counted: &Counted, why_more: Option<&str>) -> Check {
    let Counted { found, before, after, whose } = counted;
    if found < before {
        let missing = before - found;
        return Check::differs(
            "target",
            format!("the table has {found} rows, and {whose} wrote {before}: {missing} are missing"),
        );
    }
    if found <= after {
        return Check::agrees("target", format!("{found} rows, as many as {whose} wrote"));
    }
    let more = found - after;
    if let Some(why) = why_more {
        return Check::holds_more("target", format!("{found} rows, {more} more than {whose} wrote: {why}"));
    }
    Check::differs(
        "target",
        format!(
            "the table has {found} rows, and {whose} wrote {after}: {more} are too many. If others write to the table, or it \
             had rows before, say --shared-table"
        ),
    )
}

struct Expected {
    rows: u64,
    deliveries: usize,
}

/// The rows of every delivery into this table: lanes, and other workflows, share it.
async fn expected(subject: &Subject<'_>, books: &mut AnyBooks) -> Result<Option<Expected>, Failure> {
    let all = books.deliveries().await?;
    let Some(own) = all.iter().find(|stored| stored.id == subject.id) else { return Ok(None) };
    let target = own.progress.contract.fact(TARGET).to_owned();
    let same: Vec<&StoredDelivery> =
        all.iter().filter(|stored| stored.progress.contract.fact(TARGET) == target).collect();
    let mut rows = 0;
    for stored in &same {
        // A replayed letter wrote its row later, outside the ledger.
        rows += stored.progress.totals.rows + books.letter_counts(&stored.id).await?.replayed;
    }
    Ok(Some(Expected { rows, deliveries: same.len() }))
}

#[cfg(test)]
mod tests {
    use super::super::chain::Outcome;
    use super::*;

    /// Goal: missing rows always differ, more rows unless they are explained. Method: each count against 10 to 12.
    #[test]
    fn missing_rows_differ_and_more_may_be_explained() {
        let outcome =
            |found, why_more| judge(&Counted { found, before: 10, after: 12, whose: "it".into() }, why_more).outcome;
        assert_eq!(
            [9, 10, 12].map(|n| outcome(n, Some("others"))),
            [Outcome::Differs, Outcome::Agrees, Outcome::Agrees]
        );
        assert_eq!((outcome(13, None), outcome(13, Some("others"))), (Outcome::Differs, Outcome::HoldsMore));
    }
}
