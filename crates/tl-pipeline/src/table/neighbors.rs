//! Neighbours that are drawn: of every node as many as its fanout says, or all if it has no more.
//!
//! That is what `NeighborSampler` of PyTorch Geometric does without replacement, after the samples
//! of fixed size of `GraphSAGE` (Hamilton, Ying and Leskovec 2017): every set of edges of that size
//! is as likely as any other. Each edge counts, so a neighbour with two edges is twice as likely.

use tl_transform::Rng;

use crate::error::TableError;
use crate::table::Table;
use crate::table::layout::Hop;

/// The row of no node.
pub(super) const NOBODY: u64 = u64::MAX;

/// Appends the rows at the other end of up to `fanout` edges of `node`, in the order of the edges.
/// A node with fewer edges has fewer rows; an edge without a target is [`NOBODY`].
///
/// The edges are drawn by Floyd's method (Bentley and Floyd 1987): for `j` from the number of edges
/// less the fanout on, a number up to `j`, or `j` itself if that number was drawn before.
pub(super) fn draw(
    table: &dyn Table,
    node: u64,
    &Hop { fanout, direction, .. }: &Hop,
    rng: &mut Rng,
    picked: &mut Vec<u32>,
    nodes: &mut Vec<u64>,
) -> Result<(), TableError> {
    let edges = table.edge_count(direction, node)?;
    let edges = u32::try_from(edges).map_err(|_| TableError::Limit {
        what: "edges of a node",
        need: edges,
        limit: u32::MAX.into(),
    })?;
    picked.clear();
    let fanout = u32::try_from(fanout).unwrap_or(u32::MAX).min(edges);
    if fanout == edges {
        picked.extend(0..edges);
    } else {
        for last in edges - fanout..edges {
            let edge = rng.below(last + 1);
            let (edge, place) = match picked.binary_search(&edge) {
                Ok(_) => (last, picked.len()),
                Err(place) => (edge, place),
            };
            picked.insert(place, edge);
        }
    }
    for &edge in &*picked {
        nodes.push(table.edge_target(direction, node, edge.into())?.unwrap_or(NOBODY));
    }
    Ok(())
}
