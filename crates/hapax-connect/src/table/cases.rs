//! What the tests of values ask of every database alike: random numbers and moments, keys of several fields, fields
//! that are absent or null.

use hapax_engine::batch::Batch;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::config::TableConfig;
use super::number::Decimal;
use super::sample::batch_by;

/// The key of [`ORDERS`]: two fields of an object, an element of a list, and a number, of different types.
pub(crate) const ORDER_KEY: [&str; 4] = [".order.tenant", ".order.day", ".lines[0].no", "part"];

/// Orders of which some are of one key, spelled in another way; `part` is a decimal, `no` a whole number.
pub(crate) const ORDERS: [&str; 7] = [
    r#"{"order":{"tenant":"a","day":"2026-11-16"},"lines":[{"no":1}],"part":1.50,"amount":1}"#,
    r#"{"order":{"tenant":"a","day":"2026-11-17"},"lines":[{"no":1}],"part":1.50,"amount":2}"#,
    r#"{"order":{"tenant":"a","day":"2026-11-16"},"lines":[{"no":1.0}],"part":1.5,"amount":5}"#,
    r#"{"order":{"tenant":"a2026","day":"2026-11-16"},"lines":[{"no":1}],"part":1.50,"amount":4}"#,
    r#"{"order":{"tenant":"a","day":"2026-11-16"},"lines":[{"no":11}],"part":1.50,"amount":3}"#,
    r#"{"order":{"tenant":"a","day":"2026-11-16"},"lines":[{"no":1},{"no":2}],"part":15e-1,"amount":2}"#,
    r#"{"order":{"tenant":"a","day":"2026-11-16"},"lines":[],"part":1.50,"amount":9}"#,
];

/// The amounts that stay of the orders in each mode, sorted; the last order has no key and is a dead letter, but for
/// `append`, where `no` may be NULL.
pub(crate) const ORDERS_KEPT: [(ConflictMode, &str); 3] =
    [(ConflictMode::Ignore, "1 2 3 4"), (ConflictMode::Update, "2 2 3 4"), (ConflictMode::Newer, "2 3 4 5")];

/// Maps the columns `tenant`, `day` and `no` to where they are in an order, and makes them the key with `part`.
pub(crate) fn order_table(config: &mut TableConfig, mode: ConflictMode) {
    let path = |text: &str| text.parse::<FieldPath>().unwrap();
    config.mode = Some(mode);
    config.key_fields = order_key();
    let columns = ["tenant", "day", "no"].iter().zip(ORDER_KEY);
    config.columns.map = columns.map(|(column, field)| ((*column).to_owned(), path(field))).collect();
    if mode == ConflictMode::Newer {
        config.version_column = Some("amount".to_owned());
    }
}

pub(crate) fn order_key() -> Vec<FieldPath> {
    ORDER_KEY.iter().map(|field| field.parse().unwrap()).collect()
}

/// Orders as events.
pub(crate) fn orders(fields: &[FieldPath], first: u64, inputs: &[&str]) -> Batch {
    batch_by(order_key(), fields, first, inputs)
}

/// Events for a table `id, plain, filled DEFAULT 'd', needed NOT NULL DEFAULT 'd'`: absent, null, given.
pub(crate) const ABSENT: [&str; 4] = [
    r#"{"id":1}"#,
    r#"{"id":2,"plain":null,"filled":null,"needed":"n"}"#,
    r#"{"id":3,"plain":"p","filled":"f","needed":"n"}"#,
    r#"{"id":4,"needed":null}"#,
];

/// What the rows then hold, with `-` for NULL; the fourth is a dead letter that names the column.
pub(crate) const ABSENT_KEPT: [&str; 3] = ["1 - d d", "2 - - n", "3 p f n"];

/// Numbers of all sizes and spellings, always the same.
pub(crate) fn numbers(count: usize) -> Vec<String> {
    let strategy = prop_oneof![
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>()
            .prop_filter("JSON has no others", |value| value.is_finite())
            .prop_map(|value| format!("{value:e}")),
        any::<f32>()
            .prop_filter("JSON has no others", |value| value.is_finite())
            .prop_map(|value| format!("{value:e}")),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?",
    ];
    sampled(&strategy, count)
}

/// Numbers as files of CSV have them, always the same: a point at either end, zeros in front, a sign, blanks around it. None has more
/// digits than a double, or than ten on either side of the point.
pub(crate) fn written_numbers(count: usize) -> Vec<String> {
    sampled(
        &" ?[+-]?(0{0,3}[0-9]{1,7}\\.?|0{0,3}[0-9]{0,6}\\.[0-9]{1,6}|\\.[0-9]{1,4}[eE]-?[0-3]|[0-9]{1,4}\\.[eE]\\+?[0-3]) ?",
        count,
    )
}

/// Moments between the years 1 and 9999, as microseconds since 1970 and as text with some offset.
pub(crate) fn moments(count: usize) -> Vec<(i64, String)> {
    let strategy = (-62_000_000_000_i64..253_000_000_000, 0_i64..1_000_000, -14 * 60..14 * 60_i64, any::<bool>())
        .prop_map(|(seconds, micros, offset, short)| {
            let micros = if short { 0 } else { micros };
            let (local, sign) = (seconds + offset * 60, if offset < 0 { '-' } else { '+' });
            let (day, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
            let fraction = if short { String::new() } else { format!(".{micros:06}") };
            let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
            let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
            let text = format!("{}T{clock}{fraction}{sign}{hours:02}:{minutes:02}", civil(day));
            (seconds * 1_000_000 + micros, text)
        });
    sampled(&strategy, count)
}

/// The date of a day since 1970-01-01, found without the arithmetic that it tests: by walking years and months.
fn civil(mut day: i64) -> String {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while day < 0 {
        year -= 1;
        day += 365 + i64::from(leap(year));
    }
    while day >= 365 + i64::from(leap(year)) {
        day -= 365 + i64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    loop {
        let length = match month {
            2 => 28 + i64::from(leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if day < length {
            return format!("{year:04}-{month:02}-{:02}", day + 1);
        }
        day -= length;
        month += 1;
    }
}

fn sampled<S: Strategy>(strategy: &S, count: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// How exact a column of numbers is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exactness {
    Decimal,
    Double,
    Single,
}

/// Whether a number that was read is the one that was written, to a column this exact: a database may show a float in
/// other digits than the fewest.
pub(crate) fn same_number(written: &str, read: &str, exactness: Exactness) -> bool {
    let same = Decimal::parse(written) == Decimal::parse(read);
    same || match exactness {
        Exactness::Decimal => false,
        Exactness::Double => written.parse::<f64>().ok() == read.parse().ok(),
        Exactness::Single => written.parse::<f32>().ok() == read.parse().ok(),
    }
}
