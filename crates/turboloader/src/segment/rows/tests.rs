//! Errors of lists of edges.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, ListArray, StringArray};
use arrow_schema::Field;

use super::*;

/// Nodes with lists of edges.
fn batch(first_id: usize, rows: usize, lists: &[(&str, ArrayRef)]) -> RecordBatch {
    let ids = (first_id..first_id + rows).map(|id| Some(format!("{id:032x}")));
    let mut columns: Vec<(&str, ArrayRef)> = vec![(ID, Arc::new(ids.collect::<StringArray>()))];
    columns.extend(lists.iter().cloned());
    let fields =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(schema, arrays).unwrap_or_else(|error| panic!("{error}"))
}

fn integers(lists: &[&[Option<i64>]]) -> ArrayRef {
    let lists = lists.iter().map(|list| Some(list.to_vec()));
    Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))
}

fn floats(lists: &[&[Option<f64>]]) -> ArrayRef {
    let lists = lists.iter().map(|list| Some(list.to_vec()));
    Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))
}

#[test]
fn errors_in_lists_of_edges_name_the_row() {
    let zero = Some(0);
    let good = integers(&[&[zero, zero, zero], &[zero, zero], &[]]);
    let check = |lists: &[(&str, ArrayRef)], expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let settings = SegmentSettings { sync: false, ..SegmentSettings::default() };
        let first: Vec<_> = lists.iter().map(|(name, array)| (*name, array.slice(2, 1))).collect();
        let first = batch(0, 1, &first);
        let path = folder.path().join("a.tbf");
        let mut rows =
            NodeRows::new(&path, &settings, &first.schema(), &NodeNames::default()).unwrap();
        rows.push(&first).unwrap();
        // The list at fault is that of row 2: the second one of the second batch.
        let error = rows.push(&batch(1, 3, lists)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    for (value, expected) in [
        (None, "column \"edge_target\", row 2: missing value"),
        (Some(-1), "column \"edge_target\", row 2: invalid value -1"),
        (Some(1 << 32), "column \"edge_target\", row 2: invalid value 4294967296"),
    ] {
        let targets = integers(&[&[zero, zero, zero], &[zero, value], &[]]);
        check(&[(EDGE_TARGET, targets)], expected);
    }
    for (value, expected) in [
        (None, "column \"edge_relation\", row 2: missing value"),
        (Some(256), "column \"edge_relation\", row 2: invalid value 256"),
    ] {
        let relations = integers(&[&[zero, zero, zero], &[zero, value], &[]]);
        check(&[(EDGE_TARGET, good.clone()), (EDGE_RELATION, relations)], expected);
    }
    for (value, expected) in [
        (None, "column \"edge_weight\", row 2: missing value"),
        (Some(1e300), "column \"edge_weight\", row 2: invalid value 1"),
    ] {
        let one = Some(1.0);
        let weights = floats(&[&[one, one, one], &[one, value], &[]]);
        check(&[(EDGE_TARGET, good.clone()), (EDGE_WEIGHT, weights)], expected);
    }
    let short = integers(&[&[zero, zero, zero], &[zero], &[]]);
    check(&[(EDGE_TARGET, good), (EDGE_RELATION, short)], "row 2: 1 values for 2 edges");
}
