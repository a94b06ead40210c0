use super::*;

const DRAW: Draw = Draw { seed: 42, epoch: 3, window: 7 };

/// Sizes as photographs have them: some landscape formats, some portrait, from a seed.
fn photographs(count: usize, seed: u64) -> Vec<Size> {
    let mut rng = Rng::new(seed, 0, 0, 0);
    let size = |rng: &mut Rng| {
        let long = 300 + rng.below(500);
        let ratio = [(4, 3), (3, 2), (1, 1), (16, 9)][rng.below(4) as usize];
        let short = long * ratio.1 / ratio.0;
        if rng.chance(0.3) { (short, long) } else { (long, short) }
    };
    std::iter::repeat_with(|| size(&mut rng)).take(count).collect()
}

fn padded(window: &Window, batch: u64, extent: impl Fn(&Window, Range<u64>) -> Extent) -> u64 {
    let count = window.arranged.len() as u64;
    let first = window.first;
    let batches =
        (0..count / batch).map(|number| first + number * batch..first + (number + 1) * batch);
    batches.map(|places| extent(window, places).padded_pixels()).sum()
}

#[test]
fn windows_cut_the_places_of_an_epoch() {
    // 23 samples, global batches of 4, windows of two: the last window of whole batches is shorter.
    for (places, rest) in [(23, 20..23), (24, 20..24), (20, 20..20)] {
        let windows = Windows::new(23, places, 4, 2);
        let ranges: Vec<_> = (0..5).map(|number| windows.range(number)).collect();
        assert_eq!(ranges, [0..8, 8..16, 16..20, rest, places..places]);
        let arranged = [0, 1, 2, 3, 4].map(|number| windows.is_arranged(number));
        assert_eq!(arranged, [true, true, true, false, false]);
        for place in 0..places {
            assert!(windows.range(windows.of(place)).contains(&place), "{place} of {places}");
        }
    }
    let few = Windows::new(3, 4, 4, 2);
    assert_eq!((few.of(0), few.range(0)), (0, 0..4));
    let largest = Windows::new(u64::MAX, u64::MAX, 1, u64::MAX);
    assert_eq!(largest.range(largest.of(5)), 0..u64::MAX);
}

#[test]
fn a_window_keeps_its_samples_and_they_keep_their_sizes() {
    let sizes = photographs(96, 1);
    let window = Window::new(960..1056, 12, sizes.clone(), Some(DRAW));
    let mut sources: Vec<u64> = (960..1056).map(|place| window.source(place)).collect();
    for (place, &source) in (960..).zip(&sources) {
        assert_eq!(window.size(place), sizes[usize::try_from(source - 960).unwrap()]);
    }
    assert_ne!(sources, (960..1056).collect::<Vec<_>>());
    sources.sort_unstable();
    assert_eq!(sources, (960..1056).collect::<Vec<_>>());
}

#[test]
fn the_arrangement_is_the_one_that_is_written_down() {
    let sizes = vec![(4, 3), (3, 4), (8, 6), (4, 3), (6, 8), (3, 4), (8, 6), (6, 8)];
    let sources = |draw| {
        let window = Window::new(0..8, 2, sizes.clone(), Some(draw));
        (0..8).map(|place| window.source(place)).collect::<Vec<_>>()
    };
    // By aspect the halves are {1, 4, 5, 7} and {0, 2, 3, 6}, by area {1, 5} and {4, 7} of the
    // first; batches and halves then lie as the draw says.
    let pairs = |sources: &[u64]| {
        let mut pairs: Vec<_> =
            sources.chunks(2).map(|pair| (pair[0].min(pair[1]), pair[0].max(pair[1]))).collect();
        pairs.sort_unstable();
        pairs
    };
    assert_eq!(pairs(&sources(DRAW)), [(0, 3), (1, 5), (2, 6), (4, 7)]);
    assert_eq!(sources(DRAW), [5, 1, 0, 3, 4, 7, 2, 6]);
    assert_eq!(sources(Draw { epoch: 4, ..DRAW }), [7, 4, 5, 1, 0, 3, 6, 2]);
}

/// `testdata/tools/reference_buckets.py` has the same constants.
#[test]
fn larger_windows_are_those_of_the_second_implementation() {
    let spread = |place: u32| match place % 19 {
        7 => (0, 0),
        _ => (100 + place * 37 % 151, 90 + place * 53 % 127),
    };
    let check = |global_batch, expected: &[u64]| {
        let count = u64::try_from(expected.len()).unwrap();
        let sizes = (0..u32::try_from(count).unwrap()).map(spread).collect();
        let window = Window::new(0..count, global_batch, sizes, Some(DRAW));
        let sources: Vec<u64> = (0..count).map(|place| window.source(place)).collect();
        assert_eq!(sources, expected);
    };
    check(
        12,
        &[
            7, 45, 26, 41, 37, 49, 0, 17, 29, 5, 46, 58, 30, 42, 34, 1, 13, 25, 38, 50, 54, 9, 21,
            33, 24, 12, 36, 48, 53, 10, 15, 3, 27, 51, 39, 22, 47, 23, 35, 59, 6, 18, 43, 19, 31,
            55, 2, 14, 32, 20, 8, 11, 56, 44, 57, 16, 4, 52, 40, 28,
        ],
    );
    check(
        9,
        &[
            7, 26, 37, 41, 25, 13, 1, 30, 42, 38, 9, 21, 33, 19, 31, 43, 2, 14, 5, 17, 29, 0, 22,
            10, 34, 6, 18, 36, 12, 24, 20, 8, 15, 3, 39, 27, 11, 44, 35, 23, 28, 16, 4, 40, 32,
        ],
    );
}

#[test]
fn equal_draws_give_equal_windows_and_others_do_not() {
    let of = |draw| Window::new(0..640, 32, photographs(640, 5), Some(draw));
    assert_eq!(of(DRAW), of(DRAW));
    for draw in [Draw { seed: 43, ..DRAW }, Draw { epoch: 4, ..DRAW }, Draw { window: 8, ..DRAW }] {
        assert_ne!(of(draw), of(DRAW));
    }
}

#[test]
fn what_is_not_arranged_stays_as_it_is() {
    let window = Window::new(100..103, 4, photographs(3, 1), None);
    assert_eq!((100..103).map(|place| window.source(place)).collect::<Vec<_>>(), [100, 101, 102]);
    let empty = Window::new(8..8, 4, Vec::new(), None);
    assert_eq!(empty.extent(8..8), Extent::default());
}

#[test]
fn padding_is_counted_in_pixels() {
    let window = Window::new(0..3, 4, vec![(10, 5), (4, 8), (0, 0)], None);
    let extent = window.extent(0..3);
    assert_eq!((extent.size, extent.pixels, extent.padded_pixels()), ((10, 8), 82, 240));
}

#[test]
fn most_padding_of_photographs_is_saved() {
    let sizes = photographs(1_024, 9);
    let window = Window::new(0..1_024, 32, sizes.clone(), Some(DRAW));
    let pixels: u64 = sizes.iter().map(|&size| area(size)).sum();
    let before = padded(&window, 32, Window::extent_before);
    let after = padded(&window, 32, Window::extent);
    let percent = |padded: u64| (padded - pixels) * 100 / pixels;
    // Sorted by area alone, which says nothing about the aspect.
    let mut by_area = sizes;
    by_area.sort_by_key(|&size| area(size));
    let by_area: u64 = by_area
        .chunks(32)
        .map(|batch| batch.iter().copied().collect::<Extent>().padded_pixels())
        .sum();
    assert!(percent(before) > 100, "{} %", percent(before));
    assert!(percent(by_area) > 2 * percent(after), "{} {}", percent(by_area), percent(after));
    assert!(percent(after) < 20, "{} %", percent(after));
    // A rank's quarter of each batch is alike too.
    let quarters = padded(&window, 8, Window::extent);
    assert!(quarters < after, "{quarters} {after}");
}

#[test]
fn every_rank_has_small_and_large_images() {
    let mut first_is_smaller = 0;
    for epoch in 0..200 {
        let window =
            Window::new(0..8, 8, photographs(8, u64::from(epoch)), Some(Draw { epoch, ..DRAW }));
        let half = |places| window.extent(places).pixels;
        first_is_smaller += u32::from(half(0..4) < half(4..8));
    }
    // Fifty-fifty, within four standard deviations.
    assert!((72..=128).contains(&first_is_smaller), "{first_is_smaller}");
}

#[test]
fn unknown_and_extreme_sizes_are_sizes() {
    let sizes = vec![(0, 0), (u32::MAX, u32::MAX), (0, 0), (u32::MAX, 1), (1, u32::MAX), (7, 0)];
    let window = Window::new(0..6, 2, sizes, Some(DRAW));
    let mut sources: Vec<u64> = (0..6).map(|place| window.source(place)).collect();
    sources.sort_unstable();
    assert_eq!(sources, [0, 1, 2, 3, 4, 5]);
}
