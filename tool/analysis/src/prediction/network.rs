//! Closed queueing networks of product form: how fast they serve with so many requests inside.
//!
//! Stations are described by their rates. Convolution (Buzen, "Computational algorithms for closed queueing networks with
//! exponential servers", CACM 16(9), 1973) joins them into one that serves as fast as all of them together (Chandy, Herzog and
//! Woo, "Parametric analysis of queueing networks", IBM J. Res. Dev. 19(1), 1975), and the number of requests in that is a
//! birth and death process fed by those who are not inside. It is exact for exponential times, and gives what mean value
//! analysis gives.
//!
//! A station that serves slower the more wait there is one of those too. With users who think it can have two states, one with
//! few waiting and one with many, and goes from one to the other so seldom that the first, in which a run begins, is the answer.

use super::slowdown::Slowed;
use crate::statistics::mean::mean;

/// More requests than this are not distinguished: rates are continued by their asymptote.
const REQUESTS_MAX: usize = 1_024;

/// A part of a birth and death process that is less probable than the most probable state by this much is left out.
const NEGLIGIBLE: f64 = 1e-16;

/// States beyond one that is less probable than this are not reached in a run.
const UNREACHED: f64 = 1e-5;

/// No weight of a station that slows down is larger, so that products of them are finite.
const WEIGHT_MAX: f64 = 1e150;

/// Rates that differ by less than this share are the same.
const ROUNDING: f64 = 1e-9;

/// A sum is scaled down when it is larger than this.
const SUM_MAX: f64 = 1e200;

/// How fast a station, or several, serve with 1, 2, .. requests inside, per second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    per_s: Vec<f64>,
    limit_per_s: f64,
    /// What the rate tends to with more requests than are distinguished, unless it falls there.
    end_per_s: f64,
    /// How a station among them slows down.
    slowed: Option<Slowed>,
}

/// How many requests to distinguish where stations have as many servers as this.
pub(super) fn requests(servers: f64) -> usize {
    ((2.0 * servers).ceil() as usize).clamp(128, REQUESTS_MAX)
}

impl Rates {
    /// A queue before equal servers. A part of a server is one that is as much slower.
    pub(super) fn of_servers(demand_us: f64, servers: f64, requests: usize) -> Self {
        let rate = |busy: f64| busy.min(servers) / demand_us * 1e6;
        Self {
            per_s: (1..=requests).map(|inside| rate(inside as f64)).collect(),
            limit_per_s: rate(f64::INFINITY),
            end_per_s: rate(f64::INFINITY),
            slowed: None,
        }
    }

    /// The same station where requests take longer the more of them are there.
    pub(super) fn slowed(mut self, by: Slowed) -> Self {
        for (rate, present) in self.per_s.iter_mut().zip(1u32..) {
            *rate /= by.factor(present.into());
        }
        self.end_per_s /= by.by.factor_max().unwrap_or(1.0);
        self.slowed = Some(by);
        self
    }

    /// Whether a station among them slows down.
    pub(super) fn is_slowed(&self) -> bool {
        self.slowed.is_some()
    }

    /// Several stations that every request visits. `None` of none.
    pub(super) fn joined(stations: &[Self]) -> Option<Self> {
        let limit_per_s = stations.iter().map(|one| one.limit_per_s).reduce(f64::min)?;
        let end_per_s = stations.iter().map(|one| one.end_per_s).fold(limit_per_s, f64::min);
        let [first, others @ ..] = stations else { return None };
        if others.is_empty() {
            return Some(first.clone());
        }
        let unit_per_s = unit_per_s(stations, limit_per_s);
        let mut weights = first.weights(limit_per_s, unit_per_s);
        for other in others {
            weights = convolved(&weights, &other.weights(limit_per_s, unit_per_s));
        }
        let per_s = weights.windows(2).map(|pair| unit_per_s * pair[0] / pair[1]).collect();
        Some(Self { per_s, limit_per_s, end_per_s, slowed: stations.iter().find_map(|one| one.slowed) })
    }

    /// The same where at most `places` requests are inside at a time, each of which spends a delay there too.
    pub(super) fn confined(inside: Option<&Self>, delay_us: f64, places: u32, requests: usize) -> Self {
        let of = |present: usize| served_per_s(inside, delay_us, (present as u32).min(places));
        let last = (places.max(1) as usize).min(requests);
        let mut per_s: Vec<f64> = (1..=last).map(of).collect();
        let limit_per_s = of(places.max(1) as usize);
        per_s.resize(requests, limit_per_s);
        Self { per_s, limit_per_s, end_per_s: limit_per_s, slowed: None }
    }

    /// The rate that no number of requests exceeds.
    pub(super) fn limit_per_s(&self) -> f64 {
        self.limit_per_s
    }

    /// What the rate tends to with more and more requests, where it does not fall without end.
    pub(super) fn end_per_s(&self) -> f64 {
        self.end_per_s
    }

    /// With so many requests inside. Beyond those that were distinguished the rate goes on as that of a balanced network,
    /// n / (n + a) of what it tends to; where it falls already, as that of the station that slows down.
    fn at(&self, inside: u32) -> f64 {
        let Some(index) = (inside as usize).checked_sub(1) else { return 0.0 };
        let known = self.per_s.get(index).or(self.per_s.last()).copied().unwrap_or(0.0);
        let reached = self.per_s.len() as f64;
        if let (Some(by), true) = (self.slowed, index >= self.per_s.len() && self.falls()) {
            return known * by.factor(reached) / by.factor(inside.into());
        }
        if index < self.per_s.len() || known >= self.end_per_s {
            return known.min(self.limit_per_s);
        }
        let behind = reached * (self.end_per_s / known - 1.0);
        let inside = f64::from(inside);
        self.end_per_s * inside / (inside + behind)
    }

    /// Whether each request more makes it slower, with as many inside as are distinguished.
    fn falls(&self) -> bool {
        matches!(self.per_s.as_slice(), [.., before, last] if *last < before * (1.0 - ROUNDING))
    }

    /// The products of one over the rates, in units of a rate. Which of a station that slows down are reached is told by those in
    /// units of what all stations together serve at most.
    fn weights(&self, limit_per_s: f64, unit_per_s: f64) -> Vec<f64> {
        if self.slowed.is_none() {
            return self.products(unit_per_s).collect();
        }
        let reached = reached(self.products(limit_per_s).take_while(|weight| *weight < WEIGHT_MAX).collect());
        let mut scale = 1.0;
        let scaled = reached.into_iter().map(|weight| {
            let scaled = weight * scale;
            scale *= unit_per_s / limit_per_s;
            scaled
        });
        scaled.collect()
    }

    fn products(&self, unit_per_s: f64) -> impl Iterator<Item = f64> {
        let mut product = 1.0;
        let each = self.per_s.iter().map(move |rate| {
            product *= unit_per_s / rate;
            product
        });
        std::iter::once(1.0).chain(each)
    }
}

/// The unit in which the weights of several stations, and of all together, stay numbers, also where hundreds of servers in each
/// would make them overflow (compare Lam, "Dynamic scaling and growth behavior of queuing network normalization constants", JACM
/// 29(2), 1982): the geometric mean of the lowest rates, as many of them as there are requests. In this unit the weight of all
/// requests, spread over the stations in the most probable way, is one, and those of fewer are larger by what a number holds
/// easily. Rates of a station that slows down are not ascending, and do not count.
fn unit_per_s(stations: &[Rates], limit_per_s: f64) -> f64 {
    let steady = || stations.iter().filter(|one| one.slowed.is_none());
    let requests = steady().map(|one| one.per_s.len()).min().unwrap_or(0);
    let mut rates: Vec<f64> = steady().flat_map(|one| &one.per_s).copied().collect();
    rates.sort_by(f64::total_cmp);
    let logs: Vec<f64> = rates.iter().take(requests).map(|rate| rate.ln()).collect();
    if logs.is_empty() { limit_per_s } else { mean(&logs).exp().min(limit_per_s) }
}

/// Weights of a station that slows down, none beyond numbers that it never has while another station is slower.
fn reached(mut weights: Vec<f64>) -> Vec<f64> {
    let least = weights.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    let Some((index, least)) = least.map(|(index, least)| (index, *least)) else { return weights };
    if least < UNREACHED * weights.iter().take(index).sum::<f64>() {
        weights.iter_mut().skip(index + 1).for_each(|weight| *weight = 0.0);
    }
    weights
}

fn convolved(one: &[f64], other: &[f64]) -> Vec<f64> {
    let of = |total: usize| (0..=total).map(|part| one[part] * other[total - part]).sum();
    (0..one.len().min(other.len())).map(of).collect()
}

/// Requests served per second where so many users spend a delay of their own between one and the next, and nothing else
/// where there is no station.
pub(super) fn served_per_s(stations: Option<&Rates>, delay_us: f64, users: u32) -> f64 {
    let delay_s = delay_us / 1e6;
    match stations {
        None if delay_s > 0.0 => f64::from(users) / delay_s,
        None => 0.0,
        Some(rates) if delay_s <= 0.0 => rates.at(users),
        Some(rates) if rates.is_slowed() => mean_falling_rate(rates, delay_s, users),
        Some(rates) => mean_rate(rates, delay_s, users),
    }
}

/// The same where rates may fall: the number inside may have several probable values. They are summed from the fewest on, up
/// to those that are not reached.
fn mean_falling_rate(rates: &Rates, delay_s: f64, users: u32) -> f64 {
    let (mut weight, mut total, mut served) = (1.0, 1.0, 0.0);
    for inside in 0..users {
        let rate = rates.at(inside + 1);
        let growth = f64::from(users - inside) / delay_s / rate;
        if weight < NEGLIGIBLE * total || (growth > 1.0 && weight < UNREACHED * total) {
            break;
        }
        weight *= growth;
        total += weight;
        served += weight * rate;
        if total > SUM_MAX {
            (weight, total, served) = (weight / SUM_MAX, total / SUM_MAX, served / SUM_MAX);
        }
    }
    served / total
}

/// The mean of the rates over the birth and death process of the number inside. It has one most probable number, from where
/// it is summed both ways.
fn mean_rate(rates: &Rates, delay_s: f64, users: u32) -> f64 {
    let growth = |inside: u32| f64::from(users - inside) / delay_s / rates.at(inside + 1);
    let (mut low, mut high) = (0, users);
    while low < high {
        let middle = low + (high - low) / 2;
        if growth(middle) < 1.0 { high = middle } else { low = middle + 1 }
    }
    let (mut total, mut served) = (1.0, rates.at(low));
    let mut weight = 1.0;
    // Of figures that no system has, weights may be no numbers: they would be summed for every user.
    let is_done = |weight: f64| weight < NEGLIGIBLE || !weight.is_finite();
    for inside in low..users {
        weight *= growth(inside);
        total += weight;
        served += weight * rates.at(inside + 1);
        if is_done(weight) {
            break;
        }
    }
    weight = 1.0;
    for inside in (0..low).rev() {
        weight /= growth(inside);
        total += weight;
        served += weight * rates.at(inside);
        if is_done(weight) {
            break;
        }
    }
    served / total
}

#[cfg(test)]
mod tests {
    use super::super::slowdown::Slowdown;
    use super::*;
    use crate::laws::mva::{Station, mva, repairman};

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() <= tolerance, "{found} is not {expected}");
    }

    fn joined(stations: &[(f64, f64)]) -> Rates {
        let all: Vec<Rates> =
            stations.iter().map(|&(demand, servers)| Rates::of_servers(demand, servers, 128)).collect();
        Rates::joined(&all).expect("stations")
    }

    /// R. Jain, "The Art of Computer Systems Performance Analysis" (1991), table 34.1: demands of 2, 3 and 1 s, think
    /// time 4 s.
    #[test]
    fn published_table() {
        let rates = joined(&[(2e6, 1.0), (3e6, 1.0), (1e6, 1.0)]);
        for (users, response_s) in
            [(1, 6.0), (2, 7.4), (3, 9.088), (4, 11.051), (5, 13.256), (17, 47.045), (20, 56.016)]
        {
            let found = served_per_s(Some(&rates), 4e6, users);
            near(f64::from(users) / found - 4.0, response_s, 1e-3 / response_s);
        }
    }

    /// The interactive system of Lazowska, Zahorjan, Graham and Sevcik, "Quantitative System Performance" (1984): demands of
    /// 0.605, 2.1 and 1.35 s, think time 15 s.
    #[test]
    fn single_servers_are_those_of_mean_value_analysis() {
        let demands = [0.605e6, 2.1e6, 1.35e6];
        let stations = demands.map(|demand_us| Station::Queue { demand_us, servers: 1 });
        let rates = joined(&demands.map(|demand| (demand, 1.0)));
        for exact in mva(&stations, 15e6, 400) {
            near(served_per_s(Some(&rates), 15e6, exact.users), exact.throughput_per_s, 1e-9);
        }
    }

    #[test]
    fn several_servers_are_the_machine_repairman() {
        for (servers, demand_us, think_us) in [(1, 1_000.0, 4_000.0), (4, 2_000.0, 8_000.0), (64, 5e3, 1e5)] {
            let rates = Rates::of_servers(demand_us, f64::from(servers), 128);
            for users in [1, 2, 3, 7, 20, 64, 90, 1_300, 20_000] {
                let exact = repairman(servers, think_us / demand_us, users) / demand_us * 1e6;
                near(served_per_s(Some(&rates), think_us, users), exact, 1e-9);
            }
        }
    }

    /// Balanced network of K stations: X(N) = N / (N + K - 1) / D, beyond what is distinguished as well.
    #[test]
    fn balanced_network() {
        let rates = joined(&[(100.0, 1.0); 3]);
        for users in [1, 5, 128, 129, 5_000] {
            near(served_per_s(Some(&rates), 0.0, users), f64::from(users) / f64::from(users + 2) * 1e4, 1e-9);
        }
    }

    /// The products of hundreds of servers in each of several tiers are beyond what a number holds. Up to as many requests as one of
    /// them has servers nobody waits.
    #[test]
    fn hundreds_of_processors_in_each_of_several_tiers_stay_numbers() {
        for (servers, demands) in
            [(256.0, vec![100.0, 101.0, 102.0, 102.0]), (512.0, vec![100.0, 101.0, 102.0])]
        {
            let of = |demand: &f64| Rates::of_servers(*demand, servers, requests(servers));
            let all: Vec<Rates> = demands.iter().map(of).collect();
            let rates = Rates::joined(&all).expect("stations");
            let alone_us: f64 = demands.iter().sum();
            for users in [1, 17, 100, servers as u32] {
                near(served_per_s(Some(&rates), 0.0, users), f64::from(users) / alone_us * 1e6, 1e-9);
            }
            let served_by = |users| served_per_s(Some(&rates), 0.0, users);
            let served = [300, 600, 1_100, 5_000, 100_000].map(served_by);
            assert!(served.is_sorted() && served[4] <= rates.limit_per_s(), "{served:?}");
            near(served[4], rates.limit_per_s(), 0.01);
            near(served_per_s(Some(&rates), 1e6, 300), 300.0 / (1e6 + alone_us) * 1e6, 1e-9);
        }
    }

    fn slowed(demand_us: f64, growth: f64) -> Rates {
        of_power(demand_us, growth, 1.0)
    }

    fn of_power(demand_us: f64, growth: f64, power: f64) -> Rates {
        let by = Slowdown { onset: 0.0, growth, power };
        Rates::of_servers(demand_us, 1.0, 128).slowed(Slowed { by, servers: 1.0 })
    }

    /// By hand: three users who think for 1 s, and a station that serves 1, 1/2 and 1/3 per second. The numbers there have the
    /// weights 1, 3, 12 and 36.
    #[test]
    fn a_station_that_slows_down_with_thinking_users() {
        near(served_per_s(Some(&slowed(1e6, 1.0)), 1e6, 3), 21.0 / 52.0, 1e-12);
    }

    /// By hand: the same three users, and a station that serves 1, 1/2 and 1/2 per second. The numbers there have the weights 1,
    /// 3, 12 and 24. With many users it serves 1/2, also with more than are distinguished.
    #[test]
    fn a_station_that_is_slower_as_soon_as_one_waits() {
        let rates = of_power(1e6, 1.0, 0.0);
        near(served_per_s(Some(&rates), 1e6, 3), 21.0 / 40.0, 1e-12);
        for users in [2, 3, 128, 129, 4_000] {
            near(served_per_s(Some(&rates), 0.0, users), 0.5, 1e-12);
        }
        near(served_per_s(Some(&rates), 1e6, 4_000), 0.5, 1e-9);
        let both = [Rates::of_servers(1e5, 1.0, 128), rates];
        let rates = Rates::joined(&both).expect("stations");
        for users in [50, 128, 129, 1_000] {
            near(served_per_s(Some(&rates), 0.0, users), 0.5, 1e-6);
        }
    }

    /// By hand: weights 1, 1, 2, 6, .. of the one that slows down, and 1 of the other, so that those of both are 1, 2, 4, 10.
    /// With many nearly all are at the slower one, which serves 1 / n.
    #[test]
    fn a_station_that_slows_down_beside_another() {
        let both = [Rates::of_servers(1e6, 1.0, 128), slowed(1e6, 1.0)];
        let rates = Rates::joined(&both).expect("stations");
        for (users, expected, tolerance) in
            [(1, 0.5, 1e-12), (2, 0.5, 1e-12), (3, 0.4, 1e-12), (200, 1.0 / 200.0, 0.01), (5_000, 2e-4, 0.01)]
        {
            near(served_per_s(Some(&rates), 0.0, users), expected, tolerance);
        }
    }

    #[test]
    fn a_station_that_does_not_slow_down_is_what_it_was() {
        let plain = Rates::of_servers(5e3, 1.0, 128);
        for users in [1, 2, 7, 20, 90, 1_300, 4_000] {
            let exact = served_per_s(Some(&plain), 1e5, users);
            near(served_per_s(Some(&slowed(5e3, 0.0)), 1e5, users), exact, 1e-9);
        }
    }

    /// The slower station keeps the others from waiting at the one that would slow down: it takes 51 there to be slower, which
    /// has a chance of less than 1e-6.
    #[test]
    fn a_slower_station_before_it_keeps_it_fast() {
        let rates = Rates::joined(&[Rates::of_servers(2e6, 1.0, 128), slowed(1e6, 0.02)]).expect("stations");
        near(served_per_s(Some(&rates), 0.0, 100), 0.5, 1e-6);
        near(served_per_s(Some(&rates), 0.0, 1_000), 0.5, 1e-6);
    }

    /// The sum would take minutes, and come to nothing.
    #[test]
    fn what_is_no_number_is_not_summed_for_every_user() {
        let rates = Rates::of_servers(f64::NAN, 1.0, 128);
        assert!(served_per_s(Some(&rates), 1e6, u32::MAX).is_nan());
    }

    /// Half a server is one that takes twice as long.
    #[test]
    fn a_part_of_a_server_is_slower() {
        assert_eq!(Rates::of_servers(100.0, 0.5, 128), Rates::of_servers(200.0, 1.0, 128));
    }

    /// Places that are all delay are servers, and one more place than users is no bound.
    #[test]
    fn confined_to_places() {
        let places = Rates::confined(None, 2_000.0, 4, 128);
        near(places.limit_per_s(), 2_000.0, 1e-12);
        let servers = Rates::of_servers(2_000.0, 4.0, 128);
        near(served_per_s(Some(&places), 3e3, 9), served_per_s(Some(&servers), 3e3, 9), 1e-12);
        let inside = joined(&[(500.0, 1.0), (300.0, 2.0)]);
        let roomy = Rates::confined(Some(&inside), 700.0, 10, 128);
        near(served_per_s(Some(&roomy), 0.0, 9), served_per_s(Some(&inside), 700.0, 9), 1e-12);
    }
}
