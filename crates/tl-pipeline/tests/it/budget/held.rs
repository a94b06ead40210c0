//! Batches that the consumer, or code that was run on them, keeps.

use super::*;

#[test]
fn a_consumer_that_keeps_everything_is_told_instead_of_hanging() {
    let memory_budget = Some(200 * MIB);
    let config = LoaderConfig { prefetch: 3, memory_budget, ..config(train()) };
    let loader = loader(bmps(80), config);
    let most = loader.memory().max_batches.unwrap();
    assert_eq!(most, 4);
    for _ in 0..3 {
        let mut kept = Vec::new();
        let error = loader.epoch(0).find_map(|batch| match batch {
            Ok(batch) => {
                kept.push(batch);
                None
            }
            Err(error) => Some(error),
        });
        let Some(PipelineError::BatchesHeld { held: 4, most: 4 }) = error else {
            panic!("{error:?}")
        };
        assert_eq!((kept.len(), loader.memory().held), (4, 4));
    }
    // One less is fine, however long they are kept.
    let mut kept = VecDeque::new();
    for batch in loader.epoch(0) {
        kept.push_back(batch.unwrap());
        if kept.len() == 4 {
            kept.pop_front();
        }
    }
    assert_eq!(loader.memory().held, 3);
    assert!(loader.memory().batches <= most, "{}", loader.memory());
    // Kept batches of one epoch leave less for the next, which still continues.
    assert_eq!(loader.epoch(1).filter(Result::is_ok).count(), 20);
}

/// No batch was lost, so the epoch continues as soon as one is released.
#[test]
fn an_epoch_goes_on_when_a_kept_batch_is_let_go_of() {
    let config = LoaderConfig { prefetch: 3, ..config(train()) };
    let images = |batch: &Batch| (batch.number(), batch.images().to_vec());
    let expected: Vec<_> =
        loader(bmps(80), config.clone()).epoch(0).map(|batch| images(&batch.unwrap())).collect();
    let loader = loader(bmps(80), LoaderConfig { memory_budget: Some(200 * MIB), ..config });
    let mut epoch = loader.epoch(0);
    let mut kept: VecDeque<_> = epoch.by_ref().take(4).map(Result::unwrap).collect();
    let mut received: Vec<_> = kept.iter().map(images).collect();
    for _ in 0..2 {
        let error = epoch.next().unwrap().unwrap_err();
        assert!(matches!(error, PipelineError::BatchesHeld { held: 4, most: 4 }), "{error}");
        assert_eq!(epoch.remaining(), 16);
    }
    while epoch.remaining() > 0 {
        let oldest = kept.pop_front();
        let letting_go = std::thread::spawn(move || drop(oldest));
        let batch = epoch.next_timeout(PATIENCE).unwrap().unwrap();
        letting_go.join().unwrap();
        received.push(images(&batch));
        kept.push_back(batch);
    }
    assert!(received == expected);
}

/// Code that is run on batches may keep them as well, also such as nobody receives.
#[test]
fn batches_that_collating_code_keeps_are_held_too() {
    let kept: Arc<Mutex<Vec<Batch>>> = Arc::default();
    let keeping = Arc::clone(&kept);
    let collate = Collate::new(move |batch: &Batch| {
        keeping.lock().unwrap().push(batch.clone());
        Ok(())
    });
    let memory_budget = Some(200 * MIB);
    let config =
        LoaderConfig { collate: Some(collate), prefetch: 3, memory_budget, ..config(train()) };
    let loader = loader(bmps(80), config);
    for received in 0..3 {
        // Batches prepared for a cancelled epoch are kept too, though nobody receives them.
        assert!(loader.epoch(0).take(received).all(|batch| batch.is_ok()));
        let others = kept.lock().unwrap().len();
        let mut epoch = loader.epoch(0);
        assert!(epoch.by_ref().take(4 - others).all(|batch| batch.is_ok()));
        let error = epoch.next().unwrap().unwrap_err();
        assert!(matches!(error, PipelineError::BatchesHeld { held: 4, most: 4 }), "{error}");
        assert_eq!((kept.lock().unwrap().len(), loader.memory().batches), (4, 4));
        // It would continue with the released batches.
        drop(epoch);
        kept.lock().unwrap().clear();
        assert_eq!(loader.memory().batches, 0);
    }
}

#[test]
fn with_a_budget_there_is_one_epoch_at_a_time() {
    let config = LoaderConfig { memory_budget: Some(200 * MIB), ..config(train()) };
    let loader = loader(bmps(40), config);
    let mut first = loader.epoch(0);
    first.next().unwrap().unwrap();
    let error = loader.epoch(0).next().unwrap().unwrap_err();
    assert!(matches!(error, PipelineError::EpochRunning), "{error}");
    assert_eq!(first.count(), 9);
    // The next epoch is being prepared, and gives way.
    let alone = loader.batch(0, 3).unwrap();
    assert_eq!(alone.number(), 3);
    assert_eq!(loader.epoch(1).count(), 10);
}
