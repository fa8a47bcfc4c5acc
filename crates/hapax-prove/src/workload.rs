//! Inputs with known fates: orders, updates, deletes and poison, made from a seed.

use crate::shape::{Row, Shape};

/// One line of the input and what must become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The line, without its end.
    pub line: String,
    /// What must become of it.
    pub fate: Fate,
}

/// What must become of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It takes effect in the target.
    Row(Row),
    /// A transform makes two events of it, and both take effect, or neither yet.
    Pair(Box<[Row; 2]>),
    /// It becomes a dead letter, and stays one: it is no event, has no key, or breaks a CHECK.
    Dead,
    /// It becomes a dead letter because of a trigger; replayed once that is dropped, it takes effect as this row.
    Refused(Row),
}

/// How a workload is mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Orders, updates, deletes, and about three in a hundred poisoned.
    Poisoned,
    /// The same without poison.
    Clean,
    /// The same without poison, two events in every line, which [`PAIRS`] takes apart.
    Paired,
}

/// The transform that makes two events of a line. The line itself has no key: that is each event's own.
pub const PAIRS: &str = ". = array!(.pair)";

impl Input {
    /// The rows as which it takes effect.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        match &self.fate {
            Fate::Row(row) => std::slice::from_ref(row),
            Fate::Pair(rows) => &rows[..],
            Fate::Dead | Fate::Refused(_) => &[],
        }
    }
}

/// Makes `count` inputs for a table of `shape`, numbered from 1.
#[must_use]
pub fn inputs(shape: Shape, mix: Mix, count: usize, seed: u64) -> Vec<Input> {
    if mix == Mix::Paired {
        return paired(inputs(shape, Mix::Clean, count, seed));
    }
    match shape {
        Shape::UpdateJoined => joined(count, seed),
        Shape::UpdateSlots => slots(mix, count, seed),
        Shape::IgnoreFirst => repeated(mix, count, seed),
        // An epoch with a row that the table refuses is written again row by row. One without is reduced, and what the
        // reduction keeps shows where a key comes for the first time: at the beginning.
        Shape::IgnoreDiffering => orders(mix, count, count / 3, seed),
        Shape::Append | Shape::IgnoreEvent | Shape::Update | Shape::Newer | Shape::NewerDeclared => {
            orders(mix, count, 0, seed)
        }
    }
}

/// Puts two lines into one.
fn paired(single: Vec<Input>) -> Vec<Input> {
    let pairs = single.chunks_exact(2).filter_map(|pair| match [&pair[0].fate, &pair[1].fate] {
        [Fate::Row(first), Fate::Row(second)] => Some(Input {
            line: format!("{{\"pair\":[{},{}]}}", pair[0].line, pair[1].line),
            fate: Fate::Pair(Box::new([first.clone(), second.clone()])),
        }),
        _ => None,
    });
    pairs.collect()
}

/// More lines than an epoch has: what is so far apart is never reduced together.
const APART: i64 = 150;
/// Orders from here on are those that the table refuses: an epoch's reduction must not drop them before it sees them.
const REFUSED_ORDERS: i64 = 1_000_000;

/// Orders, their updates and deletes; the first `clean` of them without poison.
fn orders(mix: Mix, count: usize, clean: usize, seed: u64) -> Vec<Input> {
    let mut random = fastrand::Rng::with_seed(seed);
    let keys = (count as i64 / 4).max(10);
    let mut known = std::collections::BTreeSet::new();
    let mut made: Vec<Input> = Vec::with_capacity(count);
    for n in 1..=count as i64 {
        // Some refused orders are updated much later, so that their replay comes too late.
        let earlier = usize::try_from(n - 1 - APART).ok().and_then(|at| made.get(at));
        let order_id = match earlier.map(|input| &input.fate) {
            Some(Fate::Refused(row)) if row.n % 2 == 0 => row.order_id,
            Some(Fate::Refused(_) | Fate::Row(_) | Fate::Pair(_) | Fate::Dead) | None => random.i64(1..=keys),
        };
        let again = !known.insert(order_id) || order_id > REFUSED_ORDERS;
        let op = match (again, random.u8(0..100)) {
            (false, _) => "c",
            (true, 0..=9) => "d",
            (true, _) => "u",
        };
        let row = order(n, order_id, op, &mut random);
        made.push(match mix {
            Mix::Poisoned if made.len() >= clean => poisoned_or_good(row, random.u16(0..1000)),
            Mix::Clean | Mix::Paired | Mix::Poisoned => good(row),
        });
    }
    made
}

/// The same, but a third of the lines are earlier ones again, byte by byte: what a producer that tries again writes.
fn repeated(mix: Mix, count: usize, seed: u64) -> Vec<Input> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut made: Vec<Input> = Vec::with_capacity(count);
    for n in 1..=count as i64 {
        let nearby = made.len().saturating_sub(2 * APART as usize)..made.len();
        let again = (random.u8(0..3) == 0 && !nearby.is_empty()).then(|| &made[random.usize(nearby)]);
        let next = match again {
            Some(again @ Input { fate: Fate::Row(_), .. }) => again.clone(),
            Some(_) | None => {
                let row = order(n, n, "c", &mut random);
                match mix {
                    Mix::Clean | Mix::Paired => good(row),
                    Mix::Poisoned => poisoned_or_good(row, random.u16(0..1000)),
                }
            }
        };
        made.push(next);
    }
    made
}

fn order(n: i64, order_id: i64, op: &str, random: &mut fastrand::Rng) -> Row {
    Row {
        n,
        order_id,
        region: "eu".into(),
        reference: format!("r{order_id}"),
        account: format!("a{}", order_id % 8),
        amount: random.i64(1..=500),
        op: op.into(),
        slot: None,
        // Unique, and often lower than that of an event before it.
        version: (n + random.i64(0..400)) * 100_000 + n,
    }
}

fn poisoned_or_good(mut row: Row, dice: u16) -> Input {
    match dice {
        0..=4 => {
            let whole = line(&row);
            Input { line: whole[..whole.len() / 2].to_owned(), fate: Fate::Dead }
        }
        5..=9 => {
            let text = line(&row).replace(&format!("\"order_id\":{}", row.order_id), "\"order_id\":null");
            Input { line: text, fate: Fate::Dead }
        }
        10..=19 => {
            refuse(&mut row, -5000);
            Input { line: line(&row), fate: Fate::Dead }
        }
        20..=29 => {
            refuse(&mut row, -7);
            Input { line: line(&row), fate: Fate::Refused(row) }
        }
        _ => good(row),
    }
}

/// Makes it a new order that the table refuses.
fn refuse(row: &mut Row, amount: i64) {
    row.order_id = REFUSED_ORDERS + row.n;
    row.reference = format!("r{}", row.order_id);
    row.account = format!("a{}", row.order_id % 8);
    row.op = "c".into();
    row.amount = amount;
}

/// Pairs of text keys that are one key once they are joined by `:` or `_`, as often as others.
fn joined(count: usize, seed: u64) -> Vec<Input> {
    const CONFUSABLE: [(&str, &str); 8] = [
        ("a:b", "c"),
        ("a", "b:c"),
        ("x_y", "z"),
        ("x", "y_z"),
        ("", "p:q"),
        (":p", "q"),
        ("north", "1"),
        ("north1", ""),
    ];
    let mut random = fastrand::Rng::with_seed(seed);
    (1..=count as i64)
        .map(|n| {
            let (region, reference) = CONFUSABLE[random.usize(..CONFUSABLE.len())];
            good(Row {
                n,
                order_id: n,
                region: region.into(),
                reference: reference.into(),
                account: "a0".into(),
                amount: random.i64(1..=500),
                op: "u".into(),
                slot: None,
                version: n,
            })
        })
        .collect()
}

/// Orders that hand a unique slot on: the holder moves away, then the next one takes it, on adjacent lines. Valid in
/// lane order only; half of the pairs hand it upwards and half downwards, so that no order of keys is valid.
fn slots(mix: Mix, count: usize, seed: u64) -> Vec<Input> {
    let mut random = fastrand::Rng::with_seed(seed);
    let pairs = count as i64 / 3;
    let mut rows: Vec<(i64, String)> = Vec::new();
    for pair in 0..pairs {
        rows.push((holder(pair), format!("s{pair}")));
    }
    for pair in 0..pairs {
        rows.push((holder(pair), format!("t{pair}")));
        rows.push((taker(pair), format!("s{pair}")));
    }
    let mut made = Vec::with_capacity(count);
    for (order_id, slot) in rows {
        // The rows of an epoch with one that the table refuses are tried again, and in lane order still.
        if mix == Mix::Poisoned && random.u8(0..100) == 0 {
            let mut row = in_slot(made.len() as i64 + 1, 0, None, &mut random);
            refuse(&mut row, -7);
            made.push(Input { line: line(&row), fate: Fate::Refused(row) });
        }
        made.push(good(in_slot(made.len() as i64 + 1, order_id, Some(slot), &mut random)));
    }
    made
}

fn in_slot(n: i64, order_id: i64, slot: Option<String>, random: &mut fastrand::Rng) -> Row {
    Row {
        n,
        order_id,
        region: "eu".into(),
        reference: format!("r{order_id}"),
        account: "a0".into(),
        amount: random.i64(1..=500),
        op: "u".into(),
        slot,
        version: n,
    }
}

const fn holder(pair: i64) -> i64 {
    if pair % 2 == 0 { 2 * pair + 1 } else { 2 * pair + 2 }
}

const fn taker(pair: i64) -> i64 {
    if pair % 2 == 0 { 2 * pair + 2 } else { 2 * pair + 1 }
}

fn good(row: Row) -> Input {
    Input { line: line(&row), fate: Fate::Row(row) }
}

/// The line that carries `row`.
#[must_use]
pub fn line(row: &Row) -> String {
    let mut event = serde_json::json!({
        "n": row.n, "order_id": row.order_id, "region": row.region, "reference": row.reference,
        "account": row.account, "amount": row.amount, "op": row.op, "version": row.version,
    });
    // Rows of several shapes in turn, here and there: some say that they have no slot, some do not mention it.
    if row.slot.is_some() || (row.n % 400 < 40 && row.n % 3 == 0) {
        event["slot"] = serde_json::json!(row.slot);
    }
    event.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a seed names one workload for ever. Method: twice the same, once another.
    #[test]
    fn a_seed_names_one_workload() {
        let made = inputs(Shape::Append, Mix::Poisoned, 500, 7);
        assert_eq!(made, inputs(Shape::Append, Mix::Poisoned, 500, 7));
        assert_ne!(made, inputs(Shape::Append, Mix::Poisoned, 500, 8));
    }

    /// Goal: every kind of poison occurs, and stays under the limit that would stop a workflow.
    #[test]
    fn poison_is_of_every_kind_and_rare() {
        for seed in 0..20 {
            let made = inputs(Shape::Append, Mix::Poisoned, 3000, seed);
            let refused = made.iter().filter(|i| matches!(i.fate, Fate::Refused(_))).count();
            let broken = made.iter().filter(|i| serde_json::from_str::<serde_json::Value>(&i.line).is_err()).count();
            let keyless = made.iter().filter(|i| i.line.contains("\"order_id\":null")).count();
            let check = made.iter().filter(|i| i.line.contains("-5000")).count();
            assert!(refused > 8 && broken > 3 && keyless > 3 && check > 8, "{refused} {broken} {keyless} {check}");
            assert!(refused + broken + keyless + check < 150);
        }
        assert!(inputs(Shape::Update, Mix::Clean, 3000, 1).iter().all(|i| matches!(i.fate, Fate::Row(_))));
    }

    /// Goal: a reduction that keeps the wrong event of a key cannot hide behind rows that are refused. Method: the first
    /// lines of differing events have no poison, and many of a key that came shortly before.
    #[test]
    fn differing_events_of_one_key_come_before_any_poison() {
        for seed in 0..20 {
            let made = inputs(Shape::IgnoreDiffering, Mix::Poisoned, 600, seed);
            assert!(made.iter().any(|input| matches!(input.fate, Fate::Refused(_))));
            let keys: Vec<i64> = made[..200].iter().flat_map(Input::rows).map(|row| row.order_id).collect();
            assert_eq!(keys.len(), 200);
            let again = keys[..60].iter().collect::<std::collections::BTreeSet<_>>().len();
            assert!(again < 57, "{again} keys in the first 60 lines");
        }
    }

    /// Goal: rows that the table refuses are never alone with a good one of their key in an epoch, and some are followed
    /// by one much later. Method: the distance between a refused row and the next of its key.
    #[test]
    fn refused_rows_have_keys_of_their_own_for_an_epoch() {
        let made = inputs(Shape::Newer, Mix::Poisoned, 2400, 4);
        let key = |input: &Input| match &input.fate {
            Fate::Row(row) | Fate::Refused(row) => Some(row.order_id),
            Fate::Pair(_) | Fate::Dead => None,
        };
        let mut followed = 0;
        for (at, refused) in made.iter().enumerate().filter(|(_, input)| matches!(input.fate, Fate::Refused(_))) {
            let next = made[at + 1..].iter().position(|input| key(input) == key(refused));
            assert!(next.is_none_or(|distance| distance > 100), "{refused:?}");
            assert!(made[..at].iter().all(|input| key(input) != key(refused)), "{refused:?}");
            followed += usize::from(next.is_some());
        }
        assert!(followed > 3, "{followed}");
    }

    /// Goal: lines of one key are the same line in the workload of repetitions, and there are many.
    #[test]
    fn repetitions_are_exact() {
        let made = inputs(Shape::IgnoreFirst, Mix::Poisoned, 1200, 4);
        let mut lines = std::collections::BTreeMap::new();
        let rows = made.iter().filter_map(|input| match &input.fate {
            Fate::Row(row) => Some((row.order_id, &input.line)),
            Fate::Refused(_) | Fate::Pair(_) | Fate::Dead => None,
        });
        let mut count = 0;
        for (order_id, line) in rows {
            assert_eq!(*lines.entry(order_id).or_insert(line), line);
            count += 1;
        }
        assert!(count > lines.len() + 200, "{count} {}", lines.len());
    }

    /// Goal: a line of two events is both, and no event is lost. Method: count, and read a line.
    #[test]
    fn pairs_hold_every_event_once() {
        let made = inputs(Shape::Update, Mix::Paired, 400, 6);
        let numbers: Vec<i64> = made.iter().flat_map(Input::rows).map(|row| row.n).collect();
        assert_eq!(numbers, (1..=400).collect::<Vec<_>>());
        let line: serde_json::Value = serde_json::from_str(&made[7].line).expect("it is JSON");
        assert_eq!((&line["pair"][0]["n"], &line["pair"][1]["n"]), (&15.into(), &16.into()));
    }

    /// Goal: the slots workload is valid in lane order and in no order of keys. Method: a unique set, both ways.
    #[test]
    fn slots_are_handed_on_in_lane_order_only() {
        let made = inputs(Shape::UpdateSlots, Mix::Clean, 300, 3);
        let mut held = std::collections::BTreeMap::new();
        for input in &made {
            let Fate::Row(row) = &input.fate else { panic!("no poison here") };
            let slot = row.slot.clone().expect("every row has a slot");
            assert!(held.iter().all(|(order, taken)| *order == row.order_id || *taken != slot), "{row:?}");
            held.insert(row.order_id, slot);
        }
        assert!((0..10).any(|p| holder(p) < taker(p)) && (0..10).any(|p| holder(p) > taker(p)));
    }
}
