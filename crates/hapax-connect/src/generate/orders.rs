//! Event `index` of a seeded stream of orders, as JSON bytes.
//!
//! Reads: the recipe and the index. Writes: bytes at the end of a buffer, without any other allocation.
//! Invariant: a pure function. Neither batching, nor restarts, nor clocks change an event.

use super::config::GenerateConfig;

/// How far an update looks back for an order to change before it takes order 0.
const SEARCH_LIMIT: u64 = 1000;
/// 2026-01-01T00:00:00Z, in days since 1970; event `n` happens `n` seconds later.
const FIRST_DAY: u64 = 20_454;
const SECONDS_PER_DAY: u64 = 86_400;
/// After a hundred years the dates begin again, so that they always have four digits for the year.
const DAYS_MADE: u64 = 36_524;
/// No event is longer.
const EVENT_BYTES_MAX: usize = 256;

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Update,
    Delete,
    Poison(Poison),
}

/// Why an event cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Poison {
    CutOff,
    InvalidUtf8,
    AmountAsText,
    NullOrderId,
}

/// A good mixer of 64 bits: neighbouring indexes give unrelated numbers.
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The event's own random number.
const fn draw(config: &GenerateConfig, index: u64) -> u64 {
    mix(mix(config.seed) ^ index)
}

/// What event `index` is. An update or a delete needs an order before it, so event 0 is neither.
pub(super) const fn kind(config: &GenerateConfig, index: u64) -> Kind {
    kind_of(config, index, draw(config, index))
}

const fn kind_of(config: &GenerateConfig, index: u64, number: u64) -> Kind {
    let share = (number >> 40) % 1000;
    let poison = config.poison_per_mille as u64;
    let deletes = poison + config.deletes_per_mille as u64;
    let updates = deletes + config.updates_per_mille as u64;
    if share < poison {
        Kind::Poison(match number & 3 {
            0 => Poison::CutOff,
            1 => Poison::InvalidUtf8,
            2 => Poison::AmountAsText,
            _ => Poison::NullOrderId,
        })
    } else if index == 0 || share >= updates {
        Kind::Create
    } else if share < deletes {
        Kind::Delete
    } else {
        Kind::Update
    }
}

/// The order that event `index` is about: its own number, or that of an earlier order.
pub(super) fn order_id(config: &GenerateConfig, index: u64, kind: Kind) -> u64 {
    match kind {
        Kind::Create | Kind::Poison(_) => index,
        Kind::Update | Kind::Delete => {
            let back = mix(draw(config, index)) % config.keys.clamp(1, index);
            let newest = index - 1 - back;
            let search = newest.saturating_sub(SEARCH_LIMIT)..=newest;
            search.rev().find(|earlier| self::kind(config, *earlier) == Kind::Create).unwrap_or(0)
        }
    }
}

/// Appends event `index`.
pub(super) fn write_event(config: &GenerateConfig, index: u64, out: &mut Vec<u8>) {
    out.reserve(EVENT_BYTES_MAX);
    let number = draw(config, index);
    let kind = kind_of(config, index, number);
    let (operation, status): (&[u8], &[u8]) = match kind {
        Kind::Create | Kind::Poison(_) => (b"c", b"new"),
        Kind::Update if number & 1 == 0 => (b"u", b"paid"),
        Kind::Update => (b"u", b"shipped"),
        Kind::Delete => (b"d", b"new"),
    };
    out.extend_from_slice(b"{\"order_id\":");
    if kind == Kind::Poison(Poison::NullOrderId) {
        out.extend_from_slice(b"null");
    } else {
        write_number(out, order_id(config, index, kind));
    }
    out.extend_from_slice(b",\"customer\":\"customer-");
    if kind == Kind::Poison(Poison::InvalidUtf8) {
        out.extend_from_slice(b"\xff\xfe");
    }
    write_number(out, (number >> 8) % config.keys.max(1));
    out.extend_from_slice(b"\",\"amount_cents\":");
    match kind {
        Kind::Poison(Poison::CutOff) => return,
        Kind::Poison(Poison::AmountAsText) => out.extend_from_slice(b"\"a lot\""),
        Kind::Create | Kind::Update | Kind::Delete | Kind::Poison(Poison::InvalidUtf8 | Poison::NullOrderId) => {
            write_number(out, 100 + (number >> 16) % 99_900);
        }
    }
    out.extend_from_slice(b",\"currency\":\"EUR\",\"status\":\"");
    out.extend_from_slice(status);
    out.extend_from_slice(b"\",\"version\":");
    write_number(out, index.saturating_add(1));
    out.extend_from_slice(b",\"op\":\"");
    out.extend_from_slice(operation);
    out.extend_from_slice(b"\",\"created_at\":\"");
    write_time(out, index);
    out.extend_from_slice(b"\"}");
}

/// The digits of all numbers below 100, two each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    while number >= 10 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 || start == digits.len() {
        start -= 1;
        digits[start] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[start..]);
}

/// `2026-01-01T00:00:00Z`, `index` seconds later.
fn write_time(out: &mut Vec<u8>, index: u64) {
    let (year, month, day) = date_of(FIRST_DAY + index / SECONDS_PER_DAY % DAYS_MADE);
    let second = index % SECONDS_PER_DAY;
    let mut text = *b"0000-00-00T00:00:00Z";
    for (at, value) in [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, second / 3600),
        (14, second / 60 % 60),
        (17, second % 60),
    ] {
        text[at..at + 2].copy_from_slice(&PAIRS[value as usize]);
    }
    out.extend_from_slice(&text);
}

/// Year, month and day of a day counted from 1970-01-01; the years run from March, so that leap days come last.
const fn date_of(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
#[path = "orders_tests.rs"]
mod tests;
