use super::*;
use crate::sync::{Arc, thread};

fn shape(rows: usize, images: usize, masks: usize) -> Option<SlabLayout> {
    SlabLayout::new(rows, RowBytes { images, masks })
}

fn slab(rows: usize, row_bytes: usize) -> Slab<Vec<u8>> {
    let shape = shape(rows, row_bytes, 2).unwrap();
    let mut slab = Slab::new(&shape, 0).unwrap();
    slab.reset(&shape, rows);
    slab
}

fn fill(slab: &Slab<Vec<u8>>, row: usize, value: u8) -> Option<Complete<'_, Vec<u8>>> {
    let mut row_mut = slab.claim(row).unwrap();
    let Parts { image, mask, extra, .. } = row_mut.parts();
    image.fill(value);
    mask.fill(value + 100);
    extra.clear();
    extra.push(value);
    let label = -i64::from(value);
    let index = u64::from(value);
    let size = [value.into(), 7];
    let valid = value % 2 == 1;
    row_mut.identify(Identity { label, index, size, valid });
    row_mut.finish()
}

#[test]
fn fields_are_aligned_and_do_not_overlap() {
    let slab = slab(3, 5);
    for row in [2, 0] {
        assert!(fill(&slab, row, 10 + u8::try_from(row).unwrap()).is_none());
    }
    fill(&slab, 1, 11).unwrap().publish();
    assert_eq!(slab.images(3), [10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 12, 12, 12, 12, 12]);
    assert_eq!(slab.labels(3), [-10, -11, -12]);
    assert_eq!(slab.indices(2), [10, 11]);
    assert_eq!(slab.masks(3), [110, 110, 111, 111, 112, 112]);
    assert_eq!(slab.sizes(3), [[10, 7], [11, 7], [12, 7]]);
    assert_eq!(slab.short_labels(3), [-10, -11, -12]);
    assert_eq!(slab.valid(3), [false, true, false]);
    assert_eq!(slab.extra(2), &[12]);
    for address in [
        slab.images(3).as_ptr().addr(),
        slab.masks(3).as_ptr().addr(),
        slab.sizes(3).as_ptr().addr(),
        slab.labels(3).as_ptr().addr(),
        slab.short_labels(3).as_ptr().addr(),
        slab.indices(3).as_ptr().addr(),
        slab.valid(3).as_ptr().addr(),
    ] {
        assert_eq!(address % ALIGNMENT, 0);
    }
}

/// Slabs of three rows with columns of 3, 0, 8 and 70 bytes, filled with `row + column` and more.
fn with_columns() -> Slab<Vec<u8>> {
    let columns = [3, 0, 8, 70].into_iter();
    let shape = shape(3, 5, 2).unwrap().with_columns(columns).unwrap();
    let mut slab = Slab::new(&shape, 0).unwrap();
    slab.reset(&shape, 3);
    for row in 0..3 {
        let mut row_mut = slab.claim(row).unwrap();
        let mut parts = row_mut.parts();
        let mut again = parts.reborrow();
        for column in 0..4 {
            let value = 16 * u8::try_from(column).unwrap() + u8::try_from(row).unwrap();
            again.columns.get(column).fill(value);
        }
        parts.image.fill(200);
        if row == 2 {
            parts.columns.clear();
        }
        if let Some(mut complete) = row_mut.finish() {
            complete.move_row(2, 1);
            complete.publish();
        }
    }
    slab
}

#[test]
fn columns_are_aligned_lie_beside_the_fields_and_move_with_their_rows() {
    let slab = with_columns();
    let expected = |value: u8, bytes| [vec![value; bytes], vec![0; bytes]].concat();
    for (column, (value, bytes)) in [(0, 3), (16, 0), (32, 8), (48, 70)].into_iter().enumerate() {
        assert_eq!(slab.column(2, column), expected(value, bytes), "{column}");
        assert_eq!(slab.column(1, column).as_ptr().addr() % ALIGNMENT, 0);
    }
    assert_eq!(slab.images(3), [200; 15]);
    assert_eq!(shape(3, 5, 2).unwrap().with_columns([usize::MAX].into_iter()), None);
}

#[test]
fn a_row_is_given_out_once() {
    let slab = slab(2, 1);
    {
        let row = slab.claim(0);
        assert!(row.is_some() && slab.claim(0).is_none() && slab.claim(2).is_none());
    }
    assert!(slab.claim(0).is_none(), "a row that was let go stays taken");
}

#[test]
fn rows_are_written_from_many_threads() {
    for round in 0..if cfg!(miri) { 3 } else { 200 } {
        let slab = Arc::new(slab(8, 100));
        let threads: Vec<_> = (0..4)
            .map(|worker| {
                let slab = Arc::clone(&slab);
                thread::spawn(move || {
                    for row in (0..8).filter(|row| row % 4 == worker) {
                        if let Some(complete) = fill(&slab, row, 1 + u8::try_from(row).unwrap()) {
                            complete.publish();
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        for (row, image) in slab.images(8).chunks(100).enumerate() {
            assert!(image.iter().all(|&byte| usize::from(byte) == row + 1), "round {round}");
        }
        assert_eq!(slab.indices(8), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}

#[test]
fn views_before_publication_are_refused() {
    let slab = slab(1, 4);
    let look = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slab.images(1).len()));
    assert!(look().is_err());
    let complete = fill(&slab, 0, 1).unwrap();
    assert!(look().is_err());
    complete.publish();
    assert_eq!(look().unwrap(), 4);
}

#[test]
fn a_view_of_more_rows_than_were_filled_is_refused() {
    let mut slab = slab(3, 4);
    slab.reset(&shape(3, 4, 2).unwrap(), 1);
    fill(&slab, 0, 1).unwrap().publish();
    assert_eq!(slab.images(1), [1; 4]);
    let look = std::panic::AssertUnwindSafe(|| slab.labels(2).len());
    assert!(std::panic::catch_unwind(look).is_err());
}

#[test]
fn rows_move_with_everything_they_have() {
    let slab = slab(3, 2);
    assert!(fill(&slab, 0, 1).is_none() && fill(&slab, 1, 2).is_none());
    let mut complete = fill(&slab, 2, 3).unwrap();
    assert_eq!((complete.rows(), complete.extra(1).as_slice()), (3, &[2][..]));
    complete.move_row(0, 0);
    complete.move_row(2, 1);
    complete.publish();
    assert_eq!((slab.images(2), slab.labels(2)), (&[1, 1, 3, 3][..], &[-1, -3][..]));
    assert_eq!((slab.indices(2), slab.extra(1).as_slice()), (&[1, 3][..], &[3][..]));
    assert_eq!((slab.masks(2), slab.sizes(2)), (&[101, 101, 103, 103][..], &[[1, 7], [3, 7]][..]));
    assert_eq!((slab.short_labels(2), slab.valid(2)), (&[-1, -3][..], &[true, true][..]));
}

#[test]
fn a_reset_slab_keeps_its_memory_and_starts_over() {
    let mut slab = slab(2, 3);
    assert!(fill(&slab, 0, 7).is_none());
    slab.reset(&shape(2, 3, 2).unwrap(), 1);
    let mut row = slab.claim(0).unwrap();
    assert_eq!(row.parts().image, [7, 7, 7]);
    assert!(slab.claim(1).is_none());
    row.finish().unwrap().publish();
    assert_eq!(slab.images(1), [7, 7, 7]);
}

#[test]
fn rows_without_bytes_and_slabs_without_rows_work() {
    let empty = slab(2, 0);
    assert!(fill(&empty, 0, 1).is_none());
    fill(&empty, 1, 2).unwrap().publish();
    assert_eq!((empty.images(2), empty.labels(2)), (&[][..], &[-1, -2][..]));
    assert!(slab(0, 9).claim(0).is_none());
}

#[test]
fn a_slab_takes_on_another_shape_with_every_filling() {
    let mut slab = slab(4, 96);
    let bytes = slab.bytes();
    let shapes = [(4, 96, 2), (2, 20, 150), (1, 300, 0), (3, 0, 0), (4, 10, 80)];
    for (rows, images, masks) in shapes {
        slab.reset(&shape(rows, images, masks).unwrap(), rows);
        let mut complete = None;
        for row in 0..rows {
            complete = fill(&slab, row, 1 + u8::try_from(row).unwrap());
        }
        complete.unwrap().publish();
        let expected = |bytes, more: u8| {
            let row = move |row| vec![1 + more + u8::try_from(row).unwrap(); bytes];
            (0..rows).flat_map(row).collect::<Vec<u8>>()
        };
        assert_eq!(slab.images(rows), expected(images, 0));
        assert_eq!(slab.masks(rows), expected(masks, 100));
        assert_eq!(slab.indices(rows), &[1, 2, 3, 4][..rows]);
        assert_eq!(slab.valid(rows), &[true, false, true, false][..rows]);
        assert_eq!(slab.bytes(), bytes);
    }
}

#[test]
fn a_shape_without_room_is_refused() {
    let mut slab = slab(2, 64);
    for shape in [shape(2, 129, 2), shape(3, 1, 0)] {
        let reset = std::panic::AssertUnwindSafe(|| slab.reset(shape.as_ref().unwrap(), 1));
        assert!(std::panic::catch_unwind(reset).is_err(), "{shape:?}");
    }
}

#[test]
fn sizes_beyond_the_address_space_have_no_shape() {
    for (rows, row_bytes) in [(2, usize::MAX), (usize::MAX, 1), (usize::MAX / 8, 0), (1, 1 << 63)] {
        assert_eq!(shape(rows, row_bytes, 0), None, "{rows} {row_bytes}");
        assert_eq!(shape(rows, 0, row_bytes), None, "{rows} {row_bytes}");
    }
    // One line for each field but the masks, which have none.
    assert_eq!(shape(3, 5, 0).unwrap().bytes(), 6 * 64);
    assert_eq!(shape(3, 5, 22).unwrap().bytes(), 8 * 64);
}

#[test]
fn labels_that_32_bits_do_not_hold_stand_out() {
    let slab = slab(1, 0);
    let mut row = slab.claim(0).unwrap();
    row.identify(Identity { label: 1 << 31, index: 0, size: [0; 2], valid: true });
    row.finish().unwrap().publish();
    assert_eq!((slab.labels(1), slab.short_labels(1)), (&[1 << 31][..], &[i32::MIN][..]));
}

#[test]
fn the_last_finisher_changes_all_images() {
    let slab = slab(3, 2);
    let mut complete = None;
    for row in 0..3 {
        complete = fill(&slab, row, 1 + u8::try_from(row).unwrap());
    }
    let mut complete = complete.unwrap();
    complete.images(0..2).reverse();
    complete.publish();
    assert_eq!(slab.images(3), [2, 2, 1, 1, 3, 3]);
}

/// Memory of a test, with the number of its values that exist.
struct Lines(Box<[UnsafeCell<u8>]>, Arc<AtomicUsize>);

// SAFETY: only the slab that has the value knows its bytes.
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

// SAFETY: the box stays in its place while the value moves, and its bytes are cells that only the
// slab uses.
unsafe impl Backing for Lines {
    fn start(&self) -> std::ptr::NonNull<u8> {
        std::ptr::NonNull::new(self.0.as_ptr().cast::<u8>().cast_mut()).unwrap()
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_slab_uses_memory_that_it_is_given_if_there_is_enough() {
    let shape = shape(2, 5, 2).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    for (missing, is_used) in [(0, 1), (1, 0)] {
        let mut address = 0;
        let backing = |bytes: usize| {
            count.fetch_add(1, Ordering::Relaxed);
            let lines: Box<[_]> = (0..bytes - missing).map(|_| UnsafeCell::new(9)).collect();
            address = lines.as_ptr().addr();
            Some(Box::new(Lines(lines, Arc::clone(&count))) as Box<dyn Backing>)
        };
        let mut slab: Slab<Vec<u8>> = Slab::backed_by(&shape, 0, backing).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), is_used);
        slab.reset(&shape, 1);
        fill(&slab, 0, 11).unwrap().publish();
        assert_eq!(slab.images(1), [11; 5]);
        let contents = slab.contents();
        assert_eq!(contents.len(), shape.bytes());
        assert_eq!(contents.as_ptr(), slab.images(1).as_ptr());
        assert_eq!(contents[5], [0, 9][is_used], "the second row was never filled");
        let is_inside = (address..address + 2 * ALIGNMENT).contains(&contents.as_ptr().addr());
        assert_eq!(is_inside, is_used == 1);
        drop(slab);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}
