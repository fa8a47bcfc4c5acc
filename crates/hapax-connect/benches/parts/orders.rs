//! The rows that the generator makes, read out of its JSON before any clock runs: what the bare loop writes.

use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_engine::batch::Inputs;
use hapax_engine::source::{Polled, Room, Source as _};

/// All rows, in the order of their events, close together in memory.
pub(crate) struct Orders {
    text: String,
    rows: Vec<Row>,
}

struct Row {
    id: i64,
    amount: i64,
    /// Where the customer ends and begins in `text`, and where the status ends, which follows it.
    customer: usize,
    status: usize,
    end: usize,
}

/// One row as the table holds it.
pub(crate) struct Order<'a> {
    pub(crate) id: i64,
    pub(crate) customer: &'a str,
    pub(crate) amount: i64,
    pub(crate) status: &'a str,
}

impl Orders {
    /// The first `count` orders of the generator's defaults.
    pub(crate) fn made(count: u64) -> Self {
        let mut source = GenerateSource::new(GenerateConfig { count: Some(count), ..GenerateConfig::default() });
        let mut orders = Self { text: String::new(), rows: Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            loop {
                let mut inputs = Inputs::default();
                let polled = source.poll(&mut inputs, Room { events: 4096, bytes: 1 << 20 }).await.expect("polls");
                (0..inputs.len()).for_each(|at| orders.push(inputs.bytes(at)));
                if polled == Polled::End {
                    break;
                }
            }
        });
        assert_eq!(orders.len(), count);
        orders
    }

    fn push(&mut self, json: &[u8]) {
        let event: serde_json::Value = serde_json::from_slice(json).expect("JSON");
        let number = |name: &str| event[name].as_i64().expect("a number");
        let customer = self.text.len();
        self.text.push_str(event["customer"].as_str().expect("a text"));
        let status = self.text.len();
        self.text.push_str(event["status"].as_str().expect("a text"));
        let end = self.text.len();
        self.rows.push(Row { id: number("order_id"), amount: number("amount_cents"), customer, status, end });
    }

    pub(crate) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    pub(crate) fn get(&self, at: u64) -> Order<'_> {
        let row = &self.rows[at as usize];
        Order {
            id: row.id,
            customer: &self.text[row.customer..row.status],
            amount: row.amount,
            status: &self.text[row.status..row.end],
        }
    }
}
