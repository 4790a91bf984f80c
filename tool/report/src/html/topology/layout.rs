//! Places for the nodes of a topology: by how far they are from the load, and by host.
//!
//! On wide paper the load is on the left, each step away from it is a column, and each host a lane. On narrow paper the
//! hosts stand one below the other, with their nodes in order of the distance from the load.

use super::Graph;

/// How to arrange a topology.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paper {
    /// Class of the style sheet.
    pub(super) name: &'static str,
    /// Whether each step away from the load is a column.
    pub(super) columns: bool,
    pub(super) box_width: f64,
    /// Between boxes, in the direction of the calls.
    pub(super) gap: f64,
    /// The most characters of a line in a box.
    pub(super) chars: usize,
    /// The most characters of a name, in bold type.
    pub(super) name_chars: usize,
}

/// For print, and for screens wider than a phone's: from left to right.
pub(super) const RIGHT: Paper =
    Paper { name: "wide", columns: true, box_width: 176.0, gap: 44.0, chars: 22, name_chars: 19 };

/// For a phone held upright: from top to bottom.
pub(super) const DOWN: Paper =
    Paper { name: "narrow", columns: false, box_width: 270.0, gap: 26.0, chars: 35, name_chars: 31 };

/// Around the boxes of a host.
pub(super) const MARGIN: f64 = 12.0;

/// For the name of a host, above its boxes.
pub(super) const HEADING: f64 = 24.0;

/// Between hosts.
const BETWEEN: f64 = 14.0;

/// Between boxes one above the other in a column.
const ABOVE: f64 = 14.0;

/// Left of the boxes on narrow paper, for lines past other boxes.
pub(super) const GUTTER: f64 = 40.0;

/// Above the first line of a box, and the height of a line.
pub(super) const PADDING: f64 = 8.0;
pub(super) const LINE: f64 = 16.0;

/// The most boxes one above the other in a lane.
const STACK_MAX: usize = 6;

/// A rectangle.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A topology with a place for everything.
#[derive(Debug)]
pub(super) struct Arranged<'a> {
    pub(super) graph: &'a Graph,
    pub(super) paper: Paper,
    /// By node; `None` where there is no room.
    pub(super) boxes: Vec<Option<Rect>>,
    /// By host.
    pub(super) lanes: Vec<Rect>,
    pub(super) size: (f64, f64),
    /// Nodes for which there is no room.
    pub(super) hidden: usize,
}

impl<'a> Arranged<'a> {
    pub(super) fn new(graph: &'a Graph, paper: Paper) -> Self {
        let distances = distances(graph.nodes.len(), &graph.arrows);
        let mut arranged = Self {
            graph,
            paper,
            boxes: vec![None; graph.nodes.len()],
            lanes: Vec::new(),
            size: (0.0, 0.0),
            hidden: 0,
        };
        let columns = if paper.columns { distances.iter().max().map_or(1, |most| most + 1) } else { 1 };
        let gutter = if paper.columns { 0.0 } else { GUTTER };
        let boxes = columns as f64 * paper.box_width + (columns - 1) as f64 * paper.gap;
        let width = gutter + boxes + 2.0 * MARGIN;
        let mut top = 1.0;
        for host in 0..graph.hosts.len() {
            let height = arranged.lane(host, &distances, top, gutter);
            arranged.lanes.push(Rect { x: 1.0, y: top, width: width - 2.0, height });
            top += height + BETWEEN;
        }
        arranged.size = (width, (top - BETWEEN + 1.0).max(1.0));
        let placed = arranged.boxes.iter().flatten().count();
        arranged.hidden = graph.nodes.len() - placed;
        arranged
    }

    /// Places the boxes of one host. Returns the height of its lane.
    fn lane(&mut self, host: usize, distances: &[usize], top: f64, gutter: f64) -> f64 {
        let heading = &self.graph.hosts[host];
        let heading = if heading.label.is_empty() && heading.mark.is_empty() { MARGIN } else { HEADING };
        let mut bottoms = vec![top + heading; distances.iter().max().map_or(1, |most| most + 1)];
        let mut stacked = vec![0_usize; bottoms.len()];
        for place in self.order(host, distances) {
            let column = if self.paper.columns { distances[place] } else { 0 };
            if self.paper.columns && stacked[column] == STACK_MAX {
                continue;
            }
            stacked[column] += 1;
            let rect = Rect {
                x: gutter + MARGIN + column as f64 * (self.paper.box_width + self.paper.gap),
                y: bottoms[column],
                width: self.paper.box_width,
                height: 2.0 * PADDING + LINE * (self.graph.nodes[place].lines.len() + 1) as f64,
            };
            let below = if self.paper.columns { ABOVE } else { self.paper.gap };
            bottoms[column] = rect.y + rect.height + below;
            self.boxes[place] = Some(rect);
        }
        let below = if self.paper.columns { ABOVE } else { self.paper.gap };
        let bottom = bottoms.into_iter().fold(top + heading, f64::max);
        bottom - below + MARGIN - top
    }

    /// The nodes of a host, nearest to the load first, and the bottleneck before others as near.
    fn order(&self, host: usize, distances: &[usize]) -> Vec<usize> {
        let nodes = self.graph.nodes.iter().enumerate().filter(|(_, node)| node.host == host);
        let mut order: Vec<usize> = nodes.map(|(place, _)| place).collect();
        order.sort_by_key(|place| (distances[*place], !self.graph.nodes[*place].is_bottleneck));
        order
    }
}

/// How far each node is from the load: the most calls on the way, where the calls go in no circle.
fn distances(nodes: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let called = |place: usize| arrows.iter().any(|(_, to)| *to == place);
    let mut distances = vec![0; nodes];
    // What calls in a circle would drive each other away for ever.
    for _ in 0..nodes.min(8) {
        let before = distances.clone();
        for (from, to) in arrows {
            let through = before[*from] + 1;
            if !leads_to(arrows, *to, *from, nodes) {
                distances[*to] = distances[*to].max(through);
            }
        }
        if distances == before {
            break;
        }
    }
    // What nobody was seen to call is no load: it stands beside the server.
    let load = |place: usize| arrows.iter().any(|(from, _)| *from == place) || nodes == 1;
    for (place, distance) in distances.iter_mut().enumerate() {
        if *distance == 0 && !called(place) && !load(place) {
            *distance = 1;
        }
    }
    distances
}

/// Whether calls lead from one node to another.
fn leads_to(arrows: &[(usize, usize)], from: usize, to: usize, nodes: usize) -> bool {
    let (mut seen, mut next) = (vec![false; nodes], vec![from]);
    while let Some(place) = next.pop() {
        if place == to {
            return true;
        }
        if !std::mem::replace(&mut seen[place], true) {
            next.extend(arrows.iter().filter(|(from, _)| *from == place).map(|(_, to)| *to));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_leads_away_from_the_load() {
        assert_eq!(distances(4, &[(0, 1), (1, 2), (2, 3), (1, 3)]), [0, 1, 2, 3]);
        assert_eq!(distances(3, &[(0, 1)]), [0, 1, 1], "what nobody calls stands beside the server");
        assert_eq!(distances(1, &[]), [0]);
    }

    #[test]
    fn circles_end() {
        assert_eq!(distances(4, &[(0, 1), (1, 2), (2, 1), (2, 3)]), [0, 1, 0, 1]);
        assert_eq!(distances(2, &[(0, 0), (0, 1)]), [0, 1]);
    }
}
