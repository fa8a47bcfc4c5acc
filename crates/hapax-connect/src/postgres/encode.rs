//! Values as PostgreSQL's wire spells them: a column of many rows as one array, or a row of a binary COPY.
//!
//! Reads: rows of a batch. Writes: the message that is being made, without a copy in between.

use std::error::Error;
use std::fmt;

use bytes::{BufMut as _, Bytes, BytesMut};
use hapax_model::letter::Cause;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::column::{Kind, PostgresColumn};
use super::convert::{Stored, special};
use crate::table::number::Decimal;
use crate::table::rows::Rows;
use crate::table::tries::Fault;

/// A value could not be made while a message was written: the event is to blame, and `write` finds out which.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) Cause);

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Error for Refusal {}

type Encoded<T> = Result<T, Box<dyn Error + Sync + Send>>;

/// One column of several events, as an array.
#[derive(Debug)]
pub(super) struct ColumnArray<'a> {
    pub(super) rows: &'a Rows<'a, PostgresColumn>,
    pub(super) events: &'a [usize],
    pub(super) at: usize,
}

impl ToSql for ColumnArray<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Encoded<IsNull> {
        let kind = self.rows.mapping.columns[self.at].live.kind;
        let start = out.len();
        out.put_i32(1);
        out.put_i32(0);
        out.put_u32(kind.wire().oid());
        out.put_i32(i32::try_from(self.events.len())?);
        out.put_i32(1);
        let mut nulls = false;
        for event in self.events {
            let value = self.rows.value(&self.rows.batch.event(*event), self.at).map_err(Refusal)?;
            let place = out.len();
            out.put_i32(-1);
            if matches!(value, Stored::Null) {
                nulls = true;
                continue;
            }
            encode(&value, kind, Carrier::Array, out)?;
            let length = i32::try_from(out.len() - place - 4)?;
            out[place..place + 4].copy_from_slice(&length.to_be_bytes());
        }
        out[start + 4..start + 8].copy_from_slice(&i32::from(nulls).to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// How much of a COPY is sent at once: what is made meanwhile, the server already reads.
const COPY_BYTES: usize = 64 * 1024;
/// The head of a binary COPY: signature, flags, length of what follows.
const COPY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Rows of a binary COPY, made into a buffer that is sent whenever it is full.
#[derive(Debug)]
pub(super) struct CopyRows<'a> {
    rows: &'a Rows<'a, PostgresColumn>,
    columns: Vec<(usize, Kind)>,
    buffer: BytesMut,
}

impl<'a> CopyRows<'a> {
    /// Rows of these columns.
    pub(super) fn new(rows: &'a Rows<'a, PostgresColumn>, bound: &[usize]) -> Self {
        let columns = bound.iter().map(|at| (*at, rows.mapping.columns[*at].live.kind)).collect();
        let mut buffer = BytesMut::with_capacity(COPY_BYTES * 2);
        buffer.put_slice(COPY_HEAD);
        Self { rows, columns, buffer }
    }

    pub(super) fn push(&mut self, event: usize) -> Result<(), Fault> {
        let event = self.rows.batch.event(event);
        self.buffer.put_i16(i16::try_from(self.columns.len()).map_err(impossible)?);
        for (at, kind) in &self.columns {
            let value = self.rows.value(&event, *at).map_err(Fault::Row)?;
            let place = self.buffer.len();
            self.buffer.put_i32(-1);
            if matches!(value, Stored::Null) {
                continue;
            }
            encode(&value, *kind, Carrier::Copy, &mut self.buffer).map_err(impossible)?;
            let length = i32::try_from(self.buffer.len() - place - 4).map_err(impossible)?;
            self.buffer[place..place + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// What was made, if it is enough to be sent.
    pub(super) fn full(&mut self) -> Option<Bytes> {
        (self.buffer.len() >= COPY_BYTES).then(|| {
            let full = self.buffer.split().freeze();
            self.buffer.reserve(COPY_BYTES * 2);
            full
        })
    }

    /// The rest, with the end.
    pub(super) fn end(mut self) -> Bytes {
        self.buffer.put_i16(-1);
        self.buffer.freeze()
    }
}

/// Conversion has checked every value against its column: what does not fit now, fits no table that we know.
fn impossible(error: impl fmt::Display) -> Fault {
    Fault::Schema(format!("a value that was converted has no binary form: {error}"))
}

/// How a value travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    /// In an array of the kind's wire type.
    Array,
    /// In a COPY, as the column's own type.
    Copy,
}

/// Appends the value's bytes, without their length.
pub(super) fn encode(value: &Stored<'_>, kind: Kind, carrier: Carrier, out: &mut BytesMut) -> Encoded<()> {
    if kind == Kind::Jsonb && carrier == Carrier::Copy {
        // The version of jsonb's own wire form.
        out.put_u8(1);
    }
    match value {
        Stored::Null => {}
        Stored::Bool(value) if matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8) => {
            integer(i64::from(*value), kind, out)?;
        }
        Stored::Bool(value) => out.put_u8((*value).into()),
        Stored::Integer(value) => integer(*value, kind, out)?,
        Stored::Single(value) => out.put_f32(*value),
        Stored::Double(value) => out.put_f64(*value),
        Stored::Numeric(text) => numeric(text, out)?,
        Stored::Days(days) => out.put_i32(*days),
        Stored::Micros(micros) => out.put_i64(*micros),
        Stored::ZonedTime(micros, west) => {
            out.put_i64(*micros);
            out.put_i32(*west);
        }
        Stored::Interval(value) => {
            out.put_i64(value.micros);
            out.put_i32(value.days);
            out.put_i32(value.months);
        }
        Stored::Text(_)
        | Stored::Bytes(_)
        | Stored::Uuid(_)
        | Stored::KeyBytes(_)
        | Stored::KeyText(_)
        | Stored::Version(_) => out.put_slice(value.bytes().unwrap_or_default()),
    }
    Ok(())
}

fn integer(value: i64, kind: Kind, out: &mut BytesMut) -> Encoded<()> {
    if kind == Kind::Int2 {
        out.put_i16(i16::try_from(value)?);
    } else if kind == Kind::Int4 {
        out.put_i32(i32::try_from(value)?);
    } else {
        out.put_i64(value);
    }
    Ok(())
}

/// Digits in groups of four, the point between two groups; as many behind the point as were written.
fn numeric(text: &str, out: &mut BytesMut) -> Encoded<()> {
    const NEGATIVE: u16 = 0x4000;
    if let Some(rank) = special(text) {
        // No digits, weight 0, a sign that says it all, no digits behind the point.
        out.put_i32(0);
        out.put_u16(match rank {
            1 => 0xd000,
            -1 => 0xf000,
            _ => 0xc000,
        });
        out.put_u16(0);
        return Ok(());
    }
    let number = Decimal::parse(text).ok_or("a number beyond all reason")?;
    let scale = written_scale(text, &number);
    // Zeros in front and behind, so that the point lies between two groups.
    let behind = usize::try_from(number.exponent.rem_euclid(4))?;
    let padded = number.digits.len() + behind;
    let front = (4 - padded % 4) % 4;
    let groups = (padded + front) / 4;
    let weight = (number.exponent - number.exponent.rem_euclid(4)) / 4 + i64::try_from(groups)? - 1;
    out.put_i16(i16::try_from(groups)?);
    out.put_i16(if groups == 0 { 0 } else { i16::try_from(weight)? });
    out.put_u16(if number.sign.is_empty() { 0 } else { NEGATIVE });
    out.put_u16(u16::try_from(scale)?);
    let digits = std::iter::repeat_n(b'0', front)
        .chain(number.digits.bytes())
        .chain(std::iter::repeat_n(b'0', behind))
        .map(|digit| i16::from(digit - b'0'));
    let (mut group, mut taken) = (0, 0);
    for digit in digits {
        group = group * 10 + digit;
        taken += 1;
        if taken == 4 {
            out.put_i16(group);
            (group, taken) = (0, 0);
        }
    }
    Ok(())
}

/// How many digits are behind the point: as written, `1.50` has two.
fn written_scale(text: &str, number: &Decimal) -> i64 {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let behind = mantissa.split_once('.').map_or(0, |(_, behind)| behind.len());
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let written = i64::try_from(behind).unwrap_or(i64::MAX).saturating_sub(exponent);
    let needed = number.exponent.saturating_neg();
    // Beyond what the server can show, zeros at the end are left out.
    if written > 16_383 { needed.max(0) } else { written.max(0) }
}
