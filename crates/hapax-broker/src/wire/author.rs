//! Requests written by their shape, for tests: filled at random, honest or with a lie in one count.

use bytes::{BufMut, BytesMut};
use fastrand::Rng;

use crate::wire::shape::{Field, Kind, Shape};

/// Writes requests by their shape, with a lie in place of one count if asked.
pub(crate) struct Author {
    rng: Rng,
    version: i16,
    pub(crate) compact: bool,
    pub(crate) out: BytesMut,
    /// How many counts were written.
    pub(crate) counts: usize,
    lie: Option<(usize, i64)>,
}

impl Author {
    pub(crate) fn write(shape: &Shape, version: i16, seed: u64, lie: Option<(usize, i64)>) -> Self {
        let (rng, compact) = (Rng::with_seed(seed), version >= shape.flexible);
        let mut author = Self { rng, version, compact, out: BytesMut::new(), counts: 0, lie };
        author.structure(shape.fields);
        author
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.put_u8(value as u8);
    }

    fn bytes(&mut self, count: usize) {
        for _ in 0..count {
            let byte = self.rng.u8(b'a'..=b'z');
            self.out.put_u8(byte);
        }
    }

    fn count(&mut self) -> usize {
        let count = self.rng.usize(0..=3);
        let mut claimed = count as i64;
        if let Some((_, lie)) = self.lie.filter(|(at, _)| *at == self.counts) {
            claimed = lie;
        }
        self.counts += 1;
        match self.compact {
            true => self.varint((claimed + 1) as u32),
            false => self.out.put_i32(claimed as i32),
        }
        count
    }

    fn structure(&mut self, fields: &'static [Field]) {
        let version = self.version;
        for field in fields.iter().filter(|field| field.tag.is_none() && has(field, version)) {
            self.value(&field.kind);
        }
        if !self.compact {
            return;
        }
        let tagged: Vec<_> = fields.iter().filter(|field| field.tag.is_some() && has(field, self.version)).collect();
        let unknown = self.rng.usize(0..=2);
        self.varint((tagged.len() + unknown) as u32);
        for field in tagged {
            let rest = std::mem::take(&mut self.out);
            self.value(&field.kind);
            let value = std::mem::replace(&mut self.out, rest);
            self.varint(field.tag.expect("only tagged fields"));
            self.varint(value.len() as u32);
            self.out.extend_from_slice(&value);
        }
        for number in 0..unknown {
            self.varint(1_000 + number as u32);
            let size = self.rng.usize(0..200);
            self.varint(size as u32);
            self.bytes(size);
        }
    }

    fn value(&mut self, kind: &'static Kind) {
        match kind {
            Kind::Fixed(size) => self.bytes(*size),
            Kind::Text | Kind::Data => {
                let length = self.rng.usize(0..40);
                match (self.compact, kind) {
                    (true, _) => self.varint(length as u32 + 1),
                    (false, Kind::Text) => self.out.put_i16(length as i16),
                    (false, _) => self.out.put_i32(length as i32),
                }
                self.bytes(length);
            }
            Kind::List(fields) => (0..self.count()).for_each(|_| self.structure(fields)),
            Kind::ListOf(kind) => (0..self.count()).for_each(|_| self.value(kind)),
            Kind::One(fields) => self.structure(fields),
            Kind::Maybe(fields) => {
                let there = self.rng.bool();
                self.out.put_i8(if there { 1 } else { -1 });
                if there {
                    self.structure(fields);
                }
            }
        }
    }
}

fn has(field: &Field, version: i16) -> bool {
    (field.first..=field.last).contains(&version)
}
