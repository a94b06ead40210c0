use super::*;

/// 64 x 3 x 224 x 224 floats and the defaults of two workers.
const DEMAND: Demand = Demand {
    batch_bytes: 38_535_168,
    rows: 64,
    varying: false,
    decoded: 0,
    rendered: 0,
    worker_bytes: 0,
    workers: 2,
    prefetch: 2,
    beside: 0,
    caches: 0,
    readers: 0,
    limits: Some(LIMITS),
};

const LIMITS: Limits = Limits {
    max_pixels: 178_956_970,
    max_dimension: 65_535,
    max_decoded_bytes: 512 << 20,
    max_working_bytes: 384 << 20,
    jpeg_scans: 500,
    max_metadata_bytes: 1 << 20,
    tiff_entries: 1024,
};

/// Everything that a division allows at once, added up by hand.
fn total(division: &Division, demand: &Demand) -> u64 {
    let batch = demand.batch_bytes + division.rows_bytes * 5 / 4;
    let worker = division.share + WORKER_BYTES + demand.worker_bytes;
    let rest = division.reserve + demand.caches + demand.readers;
    division.batches * batch + demand.workers * worker + rest
}

/// The memory of a sample under these limits: stored, decoded, steps, result, twice the decoder's,
/// and eight buffers that were kept.
fn sample(limits: &SampleLimits) -> u64 {
    let Limits { max_decoded_bytes: decoded, max_working_bytes: working, .. } = limits.decode;
    limits.stored + 3 * decoded + 2 * working + 8 * limits.keep as u64
}

#[test]
fn parts_never_exceed_the_whole() {
    for budget in [100 * MIB, 150 * MIB, 300 * MIB, 1 << 30, 3 << 30, 20 << 30, 1 << 40] {
        for workers in [1, 2, 7, 64] {
            for (batch_bytes, varying) in [(1_024, false), (38_535_168, false), (1_024, true)] {
                let caches = budget / 10;
                let readers = budget / 20;
                let demand = Demand { workers, batch_bytes, varying, ..DEMAND };
                let demand = Demand { caches, readers, worker_bytes: 1 << 20, ..demand };
                match Division::new(budget, &demand) {
                    Ok(division) => {
                        assert!(total(&division, &demand) <= budget, "{budget}: {division:?}");
                        assert!(sample(&division.usual) <= division.share);
                        let largest = division.reserve.max(division.share);
                        assert!(sample(&division.largest) <= largest, "{division:?}");
                        assert!(division.batches >= 2);
                    }
                    Err(PipelineError::MemoryBudget { budget: b, required }) => {
                        assert!(b == budget && required > budget);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

#[test]
fn what_is_required_is_enough_and_one_byte_less_is_not() {
    for demand in [
        DEMAND,
        Demand { varying: true, batch_bytes: 1_024, ..DEMAND },
        Demand { varying: true, batch_bytes: 1_024, limits: None, ..DEMAND },
        Demand { caches: 5 << 30, readers: 77, workers: 100, ..DEMAND },
        Demand {
            limits: Some(Limits { max_decoded_bytes: 1 << 20, max_working_bytes: 0, ..LIMITS }),
            ..DEMAND
        },
    ] {
        let Err(PipelineError::MemoryBudget { required, .. }) = Division::new(0, &demand) else {
            panic!()
        };
        let division = Division::new(required, &demand).unwrap();
        assert!(division.batches >= 2 && total(&division, &demand) <= required, "{division:?}");
        assert!(Division::new(required - 1, &demand).is_err());
    }
    // Two batches, and a worker's 4 + 16 MiB twice; as much again for the largest sample.
    let Err(PipelineError::MemoryBudget { required, .. }) = Division::new(0, &DEMAND) else {
        panic!()
    };
    assert_eq!(required, 2 * (2 * 38_535_168 + 2 * (20 << 20)));
}

#[test]
fn a_large_budget_changes_nothing() {
    let division = Division::new(1 << 40, &DEMAND).unwrap();
    assert_eq!((division.batches, division.reserve), (3, 0));
    assert_eq!(division.usual.decode, LIMITS);
    assert_eq!(division.usual, division.largest);
    assert_eq!(division.usual.keep as u64, KEEP_BYTES);
}

#[test]
fn prefetch_is_lowered_before_workers_starve() {
    let demand = Demand { prefetch: 20, ..DEMAND };
    let batches = |budget| Division::new(budget, &demand).unwrap().batches;
    assert_eq!(batches(300 * MIB), 2);
    assert_eq!(batches(64 << 30), 21);
    let middle = batches(1 << 30);
    assert!(2 < middle && middle < 21, "{middle}");
}

/// The same samples and batches are too large for any number of workers.
#[test]
fn what_is_too_large_does_not_depend_on_workers_or_prefetch() {
    for varying in [false, true] {
        let of = |workers, prefetch| {
            let demand = Demand { workers, prefetch, varying, batch_bytes: 1 << 20, ..DEMAND };
            let division = Division::new(2 << 30, &demand).unwrap();
            (SampleLimits { keep: 0, ..division.largest }, division.rows_bytes)
        };
        let one = of(1, 1);
        assert!(one.0.decode.max_decoded_bytes > 64 << 20, "{one:?}");
        for (workers, prefetch) in [(2, 2), (8, 2), (20, 9)] {
            assert_eq!(of(workers, prefetch), one);
        }
    }
}

/// Limits of decoding do not apply to samples that are not decoded.
#[test]
fn stored_bytes_may_have_half_of_the_largest_part() {
    let demand = Demand { varying: true, batch_bytes: 1_024, limits: None, ..DEMAND };
    let stored = |budget| Division::new(budget, &demand).unwrap().largest.stored;
    assert_eq!((stored(1 << 30), stored(200 << 30)), (256 << 20, 50 << 30));
}

#[test]
fn limits_keep_their_proportions() {
    // 6 x 512 + 2 x 384 MiB, and a fifth of that.
    assert_eq!(DEMAND.largest_sample(), 3_840 << 20);
    let limits = SampleLimits::within((3_840 << 20) / 5, &DEMAND);
    assert_eq!(limits.decode.max_decoded_bytes, (512 << 20) / 5);
    assert_eq!(limits.decode.max_working_bytes, (384 << 20) / 5);
    assert_eq!(limits.stored, limits.decode.max_decoded_bytes);
    assert_eq!((limits.decode.max_pixels, limits.decode.jpeg_scans), (178_956_970, 500));
}

#[test]
fn a_report_is_one_line() {
    let report = MemoryReport {
        budget: Some(1 << 30),
        batch_bytes: 38_535_168,
        max_batches: Some(3),
        batches: 2,
        held: 1,
        workers: 2,
        share: Some(96 << 20),
        reserve: 512 << 20,
        ..MemoryReport::default()
    };
    let expected = "2 batches of 36.7 MiB (1 with the consumer, at most 3), 2 workers of 96.0 MiB, \
                    512.0 MiB for large samples; budget 1024.0 MiB";
    assert_eq!(report.to_string(), expected);
    let free = MemoryReport { workers: 1, ..MemoryReport::default() };
    assert_eq!(free.to_string(), "0 batches of 0.0 MiB (0 with the consumer), 1 worker; no budget");
}
