//! Points that change places in mirrored images, by their names.

/// Pairs of the points whose names differ in `left` and `right`, or in `l` and `r` as words: `left_eye`
/// and `right_eye`, `l_ankle` and `r_ankle`. Upper and lower case are equal.
pub(super) fn flip_pairs(names: &[&str]) -> Vec<[usize; 2]> {
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let mut is_used = vec![false; names.len()];
    let mut pairs = Vec::new();
    for (left, name) in names.iter().enumerate() {
        let mirrored = mirrored(name);
        if mirrored == *name || is_used[left] {
            continue;
        }
        let right = names.iter().position(|other| *other == mirrored);
        if let Some(right) = right.filter(|&right| !is_used[right]) {
            is_used[left] = true;
            is_used[right] = true;
            pairs.push([left, right]);
        }
    }
    pairs
}

/// The name with `right` for `left`.
fn mirrored(name: &str) -> String {
    let words = name.split_inclusive(|letter: char| !letter.is_alphanumeric());
    let words = words.map(|word| match word.strip_prefix('l') {
        Some(end) if end.chars().all(|letter| !letter.is_alphanumeric()) => format!("r{end}"),
        _ => word.replace("left", "right"),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &str, expected: &[[usize; 2]]) {
        let names: Vec<&str> = names.split(',').collect();
        assert_eq!(flip_pairs(&names), expected, "{names:?}");
    }

    #[test]
    fn names_say_which_points_are_pairs() {
        check("nose,left_eye,right_eye,left_ear,right_ear", &[[1, 2], [3, 4]]);
        check("right_hip,pelvis,left_hip", &[[2, 0]]);
        check("r_ankle,l_ankle,eye-L,eye-R,Lefteye,RightEye", &[[1, 0], [2, 3], [4, 5]]);
        check("left_eye,nose,tail", &[]);
        check("lamp,ramp,cleft,scroll,L,R", &[[4, 5]]);
        check("left_eye,left_eye,right_eye", &[[0, 2]]);
        check("", &[]);
    }

    #[test]
    fn the_persons_of_coco_have_their_pairs() {
        let parts = ["eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle"];
        let sides = parts.map(|part| format!("left_{part},right_{part}"));
        let expected: Vec<[usize; 2]> = (1..17).step_by(2).map(|left| [left, left + 1]).collect();
        check(&format!("nose,{}", sides.join(",")), &expected);
    }
}
