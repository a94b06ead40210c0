//! Two threads fill the rows of batches, and this one receives the batches in order.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use tl_handoff::pool::Pool;
use tl_handoff::ring::{Ring, Taken};
use tl_handoff::slab::{Identity, RowBytes, SlabLayout};

const ROWS: usize = 4;
const BATCHES: u64 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let layout = SlabLayout::new(ROWS, RowBytes { images: 3, masks: 0 }).ok_or("too large")?;
    let pool: Arc<Pool<()>> = Arc::new(Pool::new(3));
    // At most three batches are in flight: a worker sleeps before it starts a fourth.
    let ring: Ring<_, _, &str> = Ring::new(0..BATCHES * ROWS as u64, 0..BATCHES, 3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(row) = ring.claim() {
                    let batch = row / ROWS as u64;
                    let place = usize::try_from(row).unwrap_or(0) % ROWS;
                    let make = || pool.take(&layout, ROWS).map(Arc::new).ok_or("no memory");
                    let (Some(slab), _) = ring.enter(batch, make) else { return };
                    let Some(mut claimed) = slab.claim(place) else { return };
                    claimed.parts().image.copy_from_slice(&row.to_le_bytes()[..3]);
                    let label = i64::from(row % 2 == 0);
                    claimed.identify(Identity { label, index: row, size: [1, 1], valid: true });
                    if let Some(complete) = claimed.finish() {
                        complete.publish();
                        ring.publish(batch, Arc::clone(&slab));
                    }
                }
            });
        }
        let mut first = 0;
        while let (Taken::Ready(slab), _) = ring.take(None) {
            let expected: Vec<u64> = (first..first + ROWS as u64).collect();
            assert_eq!(slab.indices(ROWS), expected);
            println!("samples {:?}, labels {:?}", slab.indices(ROWS), slab.labels(ROWS));
            first += ROWS as u64;
        }
        assert_eq!(first, BATCHES * ROWS as u64);
    });
    println!("{} slabs were made for {BATCHES} batches", pool.allocated());
    Ok(())
}
