//! What a generator is told.

/// How orders are made. All fields but `count`, `rate` and `lane` decide what the events are, and so are the incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerateConfig {
    /// Another seed makes other orders.
    pub seed: u64,
    /// How many events there are; none: without end.
    pub count: Option<u64>,
    /// Events per second, at least 1; none: as fast as they are taken.
    pub rate: Option<u32>,
    /// How many customers there are, and how many events back updates and deletes may reach. At least 1.
    pub keys: u64,
    /// How many of a thousand events update an earlier order.
    pub updates_per_mille: u16,
    /// How many of a thousand events delete an earlier order.
    pub deletes_per_mille: u16,
    /// How many of a thousand events cannot be delivered. The three shares make 1000 at most.
    pub poison_per_mille: u16,
    /// Which part of the stream this is.
    pub lane: GenerateLane,
}

/// One of several lanes that share a stream: those events whose order falls to it, with the positions that they have in
/// the whole stream. All events of one order are in one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerateLane {
    /// Which, from 0.
    pub number: u32,
    /// Of how many; at least 1.
    pub of: u32,
}

impl GenerateLane {
    /// The lane that is the whole stream.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Its name: `0` for the whole stream, else such as `2-of-4`. Another number of lanes has other names, because a lane
    /// of it is another share.
    #[must_use]
    pub fn name(self) -> String {
        if self.of <= 1 { "0".to_owned() } else { format!("{}-of-{}", self.number, self.of) }
    }

    /// Whether the events of an order are in this lane.
    #[must_use]
    pub const fn takes(self, order_id: u64) -> bool {
        self.of <= 1 || order_id % self.of as u64 == self.number as u64
    }
}

impl Default for GenerateConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            count: None,
            rate: None,
            keys: 1000,
            updates_per_mille: 0,
            deletes_per_mille: 0,
            poison_per_mille: 0,
            lane: GenerateLane::WHOLE,
        }
    }
}

impl GenerateConfig {
    /// Everything that decides what the events are; `orders:1` changes when the recipe does.
    pub(super) fn recipe(&self) -> String {
        let Self { seed, keys, updates_per_mille, deletes_per_mille, poison_per_mille, .. } = self;
        format!(
            "orders:1:seed={seed}:keys={keys}:updates={updates_per_mille}:deletes={deletes_per_mille}:poison={poison_per_mille}"
        )
    }
}
