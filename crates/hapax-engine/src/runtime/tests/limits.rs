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

/// Goal: a delivery that is asked to end does so in time, whatever its target does, and gives its lease back. Method: a
/// commit that never answers, a commit that fails again and again, with the clock run ahead.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_in_time_whatever_the_target_does() {
    for (fault, expected) in [(Fault::Blocked, "HX5065"), (Fault::RequestLost, "HX4006")] {
        let memory = MemoryBudget::new(16 * MIB);
        let (world, run, delivery) = delivery("orders", &kibibytes(10), &memory);
        let state = MemoryState::new("a");
        let delivery = Delivery { state: Some(state.clone()), ..delivery };
        world.lock().faults = vec![Some(fault); 100_000].into();
        let task = tokio::spawn(deliver(delivery, run.control.clone()));
        wait_for(|| world.lock().faults.len() < 100_000).await;
        let asked = tokio::time::Instant::now();
        run.stop.send_replace(true);
        let end = task.await.expect("no panic");
        assert_eq!((exit_code(&end), code(&end)), (1, expected), "{end:?}");
        assert!(asked.elapsed() <= DRAIN_LIMIT + Duration::from_secs(5), "{:?}", asked.elapsed());
        assert_eq!(state.lock().lease, None, "the lease was given back");
        assert_eq!(state.lock().notes.last().map(|note| note.state), Some(WorkerState::Stopped));
        assert!(world.lock().rows.is_empty());
        assert_eq!(memory.used(), 0, "the committer has ended, too");
    }
}

/// Goal: a target that comes back is noticed soon, however long the back-off is. Method: one that is away at the start, and
/// one that goes away between two epochs, with a back-off of half an hour.
#[tokio::test(start_paused = true)]
async fn a_target_that_comes_back_is_noticed_soon() {
    let memory = MemoryBudget::new(16 * MIB);
    let (world, run, delivery) = delivery("orders", &kibibytes(10), &memory);
    let half_an_hour = Retries { backoff: vec![Duration::from_secs(1800)], ..Retries::default() };
    let settings = Settings { follow: Follow::Yes, retries: half_an_hour, ..delivery.settings };
    let more = Arc::clone(&delivery.source.feed);
    world.lock().away = true;
    let task = tokio::spawn(deliver(Delivery { settings, ..delivery }, run.control.clone()));
    for rows in [10, 11] {
        wait_for(|| run.control.meter.read().state == WorkerState::Waiting).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let back = tokio::time::Instant::now();
        world.lock().away = false;
        wait_for(|| world.lock().rows.len() == rows).await;
        assert!(back.elapsed() < Duration::from_secs(5), "{:?}", back.elapsed());
        world.lock().away = true;
        more.lock().expect("unpoisoned").push(r#"{"id":11}"#.to_owned());
    }
    world.lock().away = false;
    run.stop.send_replace(true);
    assert_eq!(task.await.expect("no panic"), DeliveryEnd::Drained);
}

/// Goal: a sink whose progress lags behind can save it, however the delivery ends, unless another worker has it. Method: a
/// source that ends, a drain, a lease that is lost, an epoch that is refused, and one that is fenced.
#[tokio::test]
async fn a_delivery_that_ends_saves_what_it_delivered() {
    let one_by_one = EpochBounds { max_events: 1, ..settings().epoch };
    for (fault, finished) in [(None, 1), (Some(Fault::Unfit), 1), (Some(Fault::StolenBefore), 0)] {
        let (world, settings) = (Shared::default(), Settings { epoch: one_by_one.clone(), ..settings() });
        // One that is fenced claims again three times.
        world.lock().faults = [None, fault, fault, fault, fault, fault].into();
        let (_, _) = run(settings, Lines::new(&THREE), &world, &MemoryState::new("a")).await;
        assert_eq!(world.lock().finished, finished, "{fault:?}");
    }
    let (world, state, run) = (Shared::default(), MemoryState::new("a"), control());
    let sink = MemorySink::new(&settings().id, &world);
    let settings = Settings { follow: Follow::Yes, ..settings() };
    let delivery = Delivery { settings, source: Lines::new(&THREE), sink, state: Some(state.clone()) };
    let task = tokio::spawn(deliver(delivery, run.control.clone()));
    wait_for(|| world.lock().rows.len() == 3).await;
    state.lock().lease = Some(("b", tokio::time::Instant::now() + Duration::from_secs(3600)));
    assert_eq!(code(&task.await.expect("no panic")), "HX4009");
    assert_eq!(world.lock().finished, 1, "the lease was lost, and what was delivered is saved under our own fence");
}

/// Goal: a source that has become another is noticed while nothing comes, every 30 s. Method: replace it after a while, with
/// the clock run ahead.
#[tokio::test(start_paused = true)]
async fn a_source_that_was_replaced_is_noticed_in_time() {
    let memory = MemoryBudget::new(16 * MIB);
    let (world, run, delivery) = delivery("orders", &kibibytes(3), &memory);
    let settings = Settings { follow: Follow::Yes, ..delivery.settings };
    let replaced = Arc::clone(&delivery.source.replaced);
    let task = tokio::spawn(deliver(Delivery { settings, ..delivery }, run.control.clone()));
    wait_for(|| world.lock().rows.len() == 3).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(!task.is_finished(), "it is compared, and is the same");
    replaced.store(true, std::sync::atomic::Ordering::SeqCst);
    let since = tokio::time::Instant::now();
    assert_eq!(code(&task.await.expect("no panic")), "HX3004");
    assert!(since.elapsed() <= Duration::from_secs(31), "{:?}", since.elapsed());
}

/// Goal: the comparison comes in time under traffic, too, not only while nothing comes. Method: a line every 100 ms, so that no
/// epoch is empty, and a source that is replaced after a while.
#[tokio::test(start_paused = true)]
async fn a_source_that_was_replaced_is_noticed_under_traffic() {
    let memory = MemoryBudget::new(16 * MIB);
    let (world, run, delivery) = delivery("orders", &kibibytes(3), &memory);
    let settings = Settings { follow: Follow::Yes, ..delivery.settings };
    let (replaced, feed) = (Arc::clone(&delivery.source.replaced), Arc::clone(&delivery.source.feed));
    let traffic = tokio::spawn(async move {
        for n in 3.. {
            feed.lock().expect("no test panics while it feeds").push(format!("{{\"id\":{n}}}"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let task = tokio::spawn(deliver(Delivery { settings, ..delivery }, run.control.clone()));
    tokio::time::sleep(Duration::from_secs(100)).await;
    let before = world.lock().rows.len();
    assert!(before > 900 && !task.is_finished(), "it is compared, and is the same; {before} rows");
    replaced.store(true, std::sync::atomic::Ordering::SeqCst);
    let since = tokio::time::Instant::now();
    assert_eq!(code(&task.await.expect("no panic")), "HX3004");
    assert!(since.elapsed() <= Duration::from_secs(31), "{:?}", since.elapsed());
    traffic.abort();
}

/// Goal: no epoch spans two files, and the step between them is an epoch of its own, which has no inputs. Method: a source that says
/// where its next file begins; then a crash right behind the step, whose successor goes on in the next file.
#[tokio::test]
async fn the_step_to_the_next_file_is_an_epoch_of_its_own() {
    let memory = MemoryBudget::new(16 * MIB);
    let (world, run, mut delivery) = delivery("orders", &kibibytes(6), &memory);
    delivery.source.boundary_at = Some(4);
    let end = deliver(delivery, run.control.clone()).await;
    assert!(matches!(end, DeliveryEnd::Finished), "{end:?}");
    let world = world.lock();
    assert_eq!(world.rows.len(), 6);
    let spans: Vec<(u32, u64, u32, u64, u64)> = world
        .epochs
        .iter()
        .map(|epoch| {
            let (from, to) = (&epoch.from, &epoch.to);
            let number = |bookmark: &Bookmark| bookmark.incarnation.number;
            (number(from), from.position.offset, number(to), to.position.offset, epoch.counts.read)
        })
        .collect();
    assert_eq!(spans, [(1, 0, 1, 4, 4), (1, 4, 2, 4, 0), (2, 4, 2, 6, 2)]);
}
