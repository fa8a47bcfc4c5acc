use super::*;

fn layout(width: usize) -> Layout {
    Layout::new(&(0..width).map(|n| FieldPath::of_name(&n.to_string())).collect::<Vec<_>>())
}

/// Goal: what a decoder put in comes out, for every kind of field. Method: one event with all of them.
#[test]
fn an_event_reads_back_as_it_was_written() {
    let mut batch = Batch::new(layout(7));
    batch.inputs.push(Position::at(3), b"skipped");
    batch.inputs.push(Position::at(9), br#"{"n":12.50,"t":"x","j":[1]}"#);
    let mut event = batch.push_event(1, 0, Operation::Upsert);
    event.set(0, &FieldSpan::Number(5..10));
    event.set(1, &FieldSpan::Text(16..17));
    event.set(2, &FieldSpan::Json(23..26));
    event.set(3, &FieldSpan::Unescaped("a\nb".into()));
    event.set(4, &FieldSpan::Null);
    event.set(5, &FieldSpan::Bool(true));
    let event = batch.event(0);
    let fields: Vec<_> = (0..7).map(|slot| event.field(slot)).collect();
    let expected = [
        FieldValue::Number("12.50"),
        FieldValue::Text("x"),
        FieldValue::Json("[1]"),
        FieldValue::Text("a\nb"),
        FieldValue::Null,
        FieldValue::Bool(true),
        FieldValue::Absent,
    ];
    assert_eq!(fields, expected);
    for (slot, field) in expected.into_iter().enumerate() {
        assert_eq!(event.field_bytes(slot), FieldBytes::from(field));
        assert_eq!(event.has(slot), field != FieldValue::Absent);
    }
    assert_eq!(event.position(), Position::at(9));
    assert_eq!(event.payload(), r#"{"n":12.50,"t":"x","j":[1]}"#);
}

/// Goal: what an event asks is told, whether or not others ask the same. Method: a delete that comes and goes.
#[test]
fn a_delete_is_told_from_the_others() {
    let mut batch = Batch::new(layout(1));
    batch.inputs.push(Position::at(0), b"{}");
    batch.push_event(0, 0, Operation::Upsert);
    batch.push_event(0, 1, Operation::Upsert).set_operation(Operation::Delete);
    batch.push_event(0, 2, Operation::Delete).set_operation(Operation::Upsert);
    let told = |batch: &Batch| batch.events().map(|event| event.operation()).collect::<Vec<_>>();
    assert_eq!(told(&batch), [Operation::Upsert, Operation::Delete, Operation::Upsert]);
    batch.pop_event();
    batch.pop_event();
    assert_eq!((told(&batch), batch.deletes), (vec![Operation::Upsert], 0));
    batch.push_event(0, 1, Operation::Delete);
    assert_eq!(told(&batch), [Operation::Upsert, Operation::Delete]);
    batch.clear();
    assert_eq!(batch.deletes, 0);
}

/// Goal: a buffered event stays far below a kilobyte beyond its payload. Method: count the buffer's memory.
#[test]
fn a_buffered_event_costs_less_than_a_kilobyte_beyond_its_payload() {
    let (mut batch, events) = (Batch::new(layout(8)), 10_000);
    for n in 0..events {
        batch.inputs.push(Position::at(n as u64), &[b' '; 100]);
        batch.push_event(n, 0, Operation::Upsert);
    }
    assert!((batch.memory_bytes() - 100 * events) / events < 1024, "{}", batch.memory_bytes() / events);
}
