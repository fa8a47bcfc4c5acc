//! Reading the log: where a read begins and ends, gaps, time, lists.

use super::{all, append, append_tens, bases, led, row};
use crate::model::Offset;
use crate::store::{Replacement, RowInfo, Store};

/// Goal: a read may begin anywhere. Method: in mid-row, at a row's ends, at the log's end.
pub(crate) async fn a_read_begins_with_the_row_that_holds_the_offset<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 4).await;
    let cases: [(Offset, &[Offset]); 7] = [
        (0, &[0, 10, 20, 30]),
        (9, &[0, 10, 20, 30]),
        (10, &[10, 20, 30]),
        (25, &[20, 30]),
        (39, &[30]),
        (40, &[]),
        (99, &[]),
    ];
    for (from, expected) in cases {
        let rows = store.read(led.partition, from, Offset::MAX, usize::MAX).await.unwrap();
        assert_eq!(bases(&rows), expected, "from {from}");
    }
    let rows = store.read(led.partition, 25, Offset::MAX, usize::MAX).await.unwrap();
    assert_eq!((rows[0].last_offset, &rows[0].data), (29, &row(led.partition, 20, 29, 0, 100).data));
}

/// Goal: a small limit never stops a reader. Method: limits around the rows' size of 100 bytes.
pub(crate) async fn the_first_row_comes_though_it_is_too_large<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 4).await;
    for (max_bytes, expected) in [(0, 1), (1, 1), (100, 1), (101, 2), (200, 2), (201, 3), (10_000, 4)] {
        let rows = store.read(led.partition, 0, Offset::MAX, max_bytes).await.unwrap();
        assert_eq!(rows.len(), expected, "{max_bytes} bytes");
    }
}

/// Goal: what is not yet for readers does not come. Method: bounds at and inside rows.
pub(crate) async fn a_read_ends_below_its_bound<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 4).await;
    for (below, expected) in [(0, 0), (1, 1), (10, 1), (11, 2), (30, 3), (40, 4)] {
        let rows = store.read(led.partition, 0, below, usize::MAX).await.unwrap();
        assert_eq!(rows.len(), expected, "below {below}");
    }
}

/// Goal: a read has a bound even over tiny rows. Method: 70 of them, read in two reads.
pub(crate) async fn a_read_has_at_most_64_rows<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 70).await;
    let rows = all(store, led.partition).await;
    assert_eq!(rows.len(), 64);
    let rest = store.read(led.partition, rows[63].last_offset + 1, Offset::MAX, usize::MAX).await.unwrap();
    assert_eq!(bases(&rest), [640, 650, 660, 670, 680, 690]);
}

/// Goal: a reader inside a removed row goes on with the next. Method: remove the middle one, read with the least limit.
pub(crate) async fn a_gap_is_stepped_over<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 4).await;
    let removed = vec![Replacement { base_offset: 10, data: None }];
    store.replace(led.partition, led.epoch, removed).await.unwrap();
    for (from, expected) in [(9, 0), (10, 20), (15, 20), (20, 20)] {
        let rows = store.read(led.partition, from, Offset::MAX, 0).await.unwrap();
        assert_eq!(bases(&rows), [expected], "from {from}");
    }
}

/// Goal: a search by time finds the first row that reaches it. Method: every boundary, equal timestamps, a gap.
pub(crate) async fn a_row_is_found_by_time<S: Store>(store: &S) {
    let led = led(store).await;
    assert_eq!(store.row_at_time(led.partition, 0).await, Ok(None));
    // Timestamps 10 10 20 20 20 30, with offsets that are not evenly spread.
    let rows = [(0, 0, 10), (1, 100, 10), (101, 101, 20), (102, 5000, 20), (5001, 5001, 20), (5002, 5100, 30)];
    let rows = rows.map(|(base, last, time)| row(led.partition, base, last, time, 20)).to_vec();
    append(store, &led, rows).await;
    let cases = [
        (-1, Some(0)),
        (10, Some(0)),
        (11, Some(101)),
        (20, Some(101)),
        (21, Some(5002)),
        (30, Some(5002)),
        (31, None),
    ];
    for (time, expected) in cases {
        let found = store.row_at_time(led.partition, time).await.unwrap();
        assert_eq!(found.map(|row| row.base_offset), expected, "time {time}");
    }
    let removed = vec![Replacement { base_offset: 101, data: None }];
    store.replace(led.partition, led.epoch, removed).await.unwrap();
    let found = store.row_at_time(led.partition, 15).await.unwrap().unwrap();
    assert_eq!((found.base_offset, found.last_offset), (102, 5000));
}

/// Goal: retention and compaction see rows without reading them. Method: list in two pages.
pub(crate) async fn a_list_tells_of_rows_without_their_data<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 3).await;
    let info = |n: i64| RowInfo { base_offset: n * 10, last_offset: n * 10 + 9, size: 100, high_timestamp: n * 1000 };
    assert_eq!(store.list(led.partition, 0, 2).await, Ok(vec![info(0), info(1)]));
    assert_eq!(store.list(led.partition, 10, 10).await, Ok(vec![info(1), info(2)]));
    // From a base offset on: a row that begins before does not come.
    assert_eq!(store.list(led.partition, 11, 10).await, Ok(vec![info(2)]));
    assert_eq!(store.list(led.partition, 21, 10).await, Ok(vec![]));
}
