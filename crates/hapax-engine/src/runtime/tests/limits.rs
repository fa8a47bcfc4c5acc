//! What deliveries share: a target that is blocked takes nothing from the others.

use super::*;

const MIB: usize = 1024 * 1024;

/// So many lines of about a KiB.
fn kibibytes(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{{\"id\":{n},\"text\":\"{}\"}}", "x".repeat(1000))).collect()
}

fn texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

/// A delivery of its own into a target of its own, with the process's memory.
fn delivery(
    name: &str,
    lines: &[String],
    memory: &Arc<MemoryBudget>,
) -> (Shared, Run, Delivery<Lines, MemorySink, MemoryState>) {
    let (world, mut run) = (Shared::default(), control());
    run.control.memory = Arc::clone(memory);
    let configured: Arc<[(String, String)]> = [(name.to_owned(), "memory".to_owned())].into();
    let epoch = EpochBounds { commit_timeout: Duration::from_secs(3600), ..settings().epoch };
    let settings = Settings { id: id(name), configured, epoch, ..settings() };
    let sink = MemorySink::new(&settings.id, &world);
    let delivery = Delivery { settings, source: Lines::new(&texts(lines)), sink, state: None };
    (world, run, delivery)
}

/// Goal: deliveries share nothing that one could take from another: a healthy one goes on beside blocked ones. Method: five
/// targets that never answer fill their buffers until the whole budget is lent; then a sixth delivery, with more to deliver
/// than its reserve holds, begins and ends.
#[tokio::test]
async fn five_blocked_targets_stop_nobody_else() {
    let memory = MemoryBudget::new(16 * MIB);
    let backlog = kibibytes(8 * 1024);
    let mut blocked = Vec::new();
    for n in 0..5 {
        let (world, run, delivery) = delivery(&format!("blocked{n}"), &backlog, &memory);
        world.lock().faults = [Some(Fault::Blocked)].into();
        let task = tokio::spawn(deliver(delivery, run.control.clone()));
        blocked.push((world, run, task));
    }
    // All that is beyond six reserves is lent, and each of the five waits for its target.
    wait_for(|| memory.used() > 10 * MIB && blocked.iter().all(|(world, ..)| world.lock().faults.is_empty())).await;
    let mut before = 0;
    while std::mem::replace(&mut before, memory.used()) != memory.used() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let healthy = kibibytes(4 * 1024);
    let (world, run, delivery) = delivery("healthy", &healthy, &memory);
    let end = tokio::time::timeout(Duration::from_secs(120), deliver(delivery, run.control.clone())).await;
    assert_eq!(end.expect("the healthy one waits for nobody"), DeliveryEnd::Finished);
    assert_eq!(world.lock().rows, healthy);
    assert!(
        blocked.iter().all(|(world, _, task)| world.lock().rows.is_empty() && !task.is_finished()),
        "they are blocked"
    );
    blocked.iter().for_each(|(_, _, task)| task.abort());
}

/// Goal: a delivery that has nothing to read keeps no memory that others could use. Method: a burst of several MiB, then
/// silence, with the file still followed.
#[tokio::test]
async fn an_idle_delivery_gives_its_memory_back() {
    let memory = MemoryBudget::new(64 * MIB);
    let burst = kibibytes(8 * 1024);
    let (world, run, delivery) = delivery("burst", &burst, &memory);
    let settings = Settings { follow: Follow::Yes, ..delivery.settings };
    let task = tokio::spawn(deliver(Delivery { settings, ..delivery }, run.control.clone()));
    wait_for(|| world.lock().rows.len() == burst.len()).await;
    wait_for(|| memory.used() <= 2 * MIB).await;
    run.stop.send_replace(true);
    assert_eq!(task.await.expect("no panic"), DeliveryEnd::Drained);
}
