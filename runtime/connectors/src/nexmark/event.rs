//! One Nexmark event as a function of its number.

use super::random::{CHANNELS, HOT_CHANNELS, Random};

/// What the options say; the rest of the benchmark's parameters are constants.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// Milliseconds since 1970-01-01.
    pub(super) base_time: u64,
    /// Events per second of event time.
    pub(super) rate: u64,
    pub(super) person_proportion: u64,
    pub(super) auction_proportion: u64,
    pub(super) bid_proportion: u64,
    pub(super) person_size: u64,
    pub(super) auction_size: u64,
    pub(super) bid_size: u64,
    pub(super) hot_auctions: u64,
    pub(super) hot_bidders: u64,
    pub(super) hot_sellers: u64,
}

const ACTIVE_PEOPLE: u64 = 1_000;
const IN_FLIGHT_AUCTIONS: u64 = 100;
/// Ids run ahead by so much, so that some refer to what does not exist yet.
const ID_LEAD: u64 = 10;
const FIRST_ID: u64 = 1_000;
const FIRST_CATEGORY: u64 = 10;
const CATEGORIES: u64 = 5;
/// One person or auction of so many is hot.
const HOT_RATIO: u64 = 100;

const FIRST_NAMES: [&str; 11] =
    ["peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "deiter", "walter"];
const LAST_NAMES: [&str; 9] = ["shultz", "abrams", "spencer", "white", "bartels", "walton", "smith", "jones", "noris"];
const CITIES: [&str; 10] =
    ["phoenix", "los angeles", "san francisco", "boise", "portland", "bend", "redmond", "seattle", "kent", "cheyenne"];
const STATES: [&str; 6] = ["az", "ca", "id", "or", "wa", "wy"];

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Person,
    Auction,
    Bid,
}

/// A person; texts are in buffers that are reused.
#[derive(Debug, Default)]
pub(super) struct Person {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) email: String,
    pub(super) credit_card: String,
    pub(super) city: &'static str,
    pub(super) state: &'static str,
    pub(super) time: u64,
    pub(super) extra: String,
}

#[derive(Debug, Default)]
pub(super) struct Auction {
    pub(super) id: u64,
    pub(super) item: String,
    pub(super) description: String,
    pub(super) initial_bid: u64,
    pub(super) reserve: u64,
    pub(super) time: u64,
    pub(super) expires: u64,
    pub(super) seller: u64,
    pub(super) category: u64,
    pub(super) extra: String,
}

#[derive(Debug, Default)]
pub(super) struct Bid {
    pub(super) auction: u64,
    pub(super) bidder: u64,
    pub(super) price: u64,
    pub(super) channel: &'static str,
    pub(super) url: &'static str,
    pub(super) time: u64,
    pub(super) extra: String,
}

impl Config {
    fn epoch(&self) -> u64 {
        self.person_proportion + self.auction_proportion + self.bid_proportion
    }

    pub(super) fn kind(&self, number: u64) -> Kind {
        match number % self.epoch() {
            rest if rest < self.person_proportion => Kind::Person,
            rest if rest < self.person_proportion + self.auction_proportion => Kind::Auction,
            _ => Kind::Bid,
        }
    }

    /// Milliseconds since 1970-01-01; computed with the precision of the reference, so that events agree.
    fn time(&self, number: u64) -> u64 {
        let delay = 1_000_000.0_f32 / self.rate as f32;
        self.base_time + ((number as f32 * delay) / 1_000.0).round() as u64
    }

    /// The newest person at an event, counted from 0.
    fn last_person(&self, number: u64) -> u64 {
        let offset = (number % self.epoch()).min(self.person_proportion - 1);
        number / self.epoch() * self.person_proportion + offset
    }

    fn any_person(&self, number: u64, random: &mut Random) -> u64 {
        let people = self.last_person(number) + 1;
        let active = people.min(ACTIVE_PEOPLE);
        people - active + random.below(active + ID_LEAD)
    }

    /// The newest auction at an event that is no person, counted from 0.
    fn last_auction(&self, number: u64) -> u64 {
        let offset = (number % self.epoch() - self.person_proportion).min(self.auction_proportion - 1);
        number / self.epoch() * self.auction_proportion + offset
    }

    fn any_auction(&self, number: u64, random: &mut Random) -> u64 {
        let newest = self.last_auction(number);
        let oldest = newest.saturating_sub(IN_FLIGHT_AUCTIONS);
        oldest + random.below(newest - oldest + 1 + ID_LEAD)
    }

    pub(super) fn person(&self, number: u64, person: &mut Person) {
        let random = &mut Random::new(number);
        let Person { name, email, credit_card, extra, .. } = person;
        [&mut *name, &mut *email, &mut *credit_card, &mut *extra].into_iter().for_each(String::clear);
        name.push_str(random.choose::<&str>(&FIRST_NAMES));
        name.push(' ');
        name.push_str(random.choose::<&str>(&LAST_NAMES));
        random.letters(7, email);
        email.push('@');
        random.letters(5, email);
        email.push_str(".com");
        for group in 0..4 {
            if group > 0 {
                credit_card.push(' ');
            }
            let digits = random.below_32(10_000);
            credit_card.extend([1_000, 100, 10, 1].map(|unit| char::from(b'0' + (digits / unit % 10) as u8)));
        }
        person.city = *random.choose::<&str>(&CITIES);
        person.state = *random.choose::<&str>(&STATES);
        let texts = name.len() + email.len() + credit_card.len() + person.city.len() + person.state.len();
        random.extra(8 + texts as u64, self.person_size, extra);
        person.id = self.last_person(number) + FIRST_ID;
        person.time = self.time(number);
    }

    pub(super) fn auction(&self, number: u64, auction: &mut Auction) {
        let random = &mut Random::new(number);
        let Auction { item, description, extra, .. } = auction;
        [&mut *item, &mut *description, &mut *extra].into_iter().for_each(String::clear);
        random.letters(20, item);
        random.letters(100, description);
        auction.initial_bid = random.price();
        auction.reserve = auction.initial_bid + random.price();
        auction.time = self.time(number);
        let events = IN_FLIGHT_AUCTIONS * self.epoch() / self.auction_proportion;
        let horizon = self.time(number + events) - auction.time;
        auction.expires = auction.time + 1 + random.below((horizon * 2).max(1));
        let seller = if random.below(self.hot_sellers) > 0 {
            self.last_person(number) / HOT_RATIO * HOT_RATIO
        } else {
            self.any_person(number, random)
        };
        auction.seller = seller + FIRST_ID;
        auction.category = FIRST_CATEGORY + random.below(CATEGORIES);
        let size = 8 + (item.len() + description.len()) as u64 + 5 * 8;
        random.extra(size, self.auction_size, extra);
        auction.id = self.last_auction(number) + FIRST_ID;
    }

    pub(super) fn bid(&self, number: u64, bid: &mut Bid) {
        let random = &mut Random::new(number);
        let auction = if random.below(self.hot_auctions) > 0 {
            self.last_auction(number) / HOT_RATIO * HOT_RATIO
        } else {
            self.any_auction(number, random)
        };
        let bidder = if random.below(self.hot_bidders) > 0 {
            self.last_person(number) / HOT_RATIO * HOT_RATIO + 1
        } else {
            self.any_person(number, random)
        };
        bid.price = random.price();
        (bid.channel, bid.url) = if random.below(2) > 0 {
            let (channel, url) = &HOT_CHANNELS[random.below(HOT_CHANNELS.len() as u64) as usize];
            (*channel, url.as_str())
        } else {
            let (channel, url) = random.choose(&CHANNELS);
            (channel.as_str(), url.as_str())
        };
        bid.extra.clear();
        random.extra(4 * 8, self.bid_size, &mut bid.extra);
        bid.auction = auction + FIRST_ID;
        bid.bidder = bidder + FIRST_ID;
        bid.time = self.time(number);
    }
}

#[cfg(test)]
mod tests {
    use nexmark::{EventGenerator, config::NexmarkConfig, event::Event};

    use super::*;

    const BASE: u64 = 1_767_225_600_000;

    fn config() -> Config {
        Config {
            base_time: BASE,
            rate: 10_000,
            person_proportion: 1,
            auction_proportion: 3,
            bid_proportion: 46,
            person_size: 200,
            auction_size: 500,
            bid_size: 100,
            hot_auctions: 2,
            hot_bidders: 4,
            hot_sellers: 4,
        }
    }

    fn number(id: usize) -> u64 {
        id as u64
    }

    /// Compares every event, field by field, with the reference.
    fn agrees(config: &Config, reference: NexmarkConfig, offset: u64, events: u64) {
        let generator = EventGenerator::new(reference).with_offset(offset);
        let (mut person, mut auction, mut bid) = (Person::default(), Auction::default(), Bid::default());
        for (event, i) in generator.zip(offset..offset + events) {
            match event {
                Event::Person(e) => {
                    assert_eq!(config.kind(i), Kind::Person);
                    config.person(i, &mut person);
                    let ours = (
                        person.id,
                        &person.name,
                        &person.email,
                        &person.credit_card,
                        person.city,
                        person.state,
                        person.time,
                        &person.extra,
                    );
                    assert_eq!(
                        ours,
                        (
                            number(e.id),
                            &e.name,
                            &e.email_address,
                            &e.credit_card,
                            &*e.city,
                            &*e.state,
                            e.date_time,
                            &e.extra
                        ),
                        "event {i}"
                    );
                }
                Event::Auction(e) => {
                    assert_eq!(config.kind(i), Kind::Auction);
                    config.auction(i, &mut auction);
                    let a = &auction;
                    let ours = (
                        a.id,
                        &a.item,
                        &a.description,
                        a.initial_bid,
                        a.reserve,
                        a.time,
                        a.expires,
                        a.seller,
                        a.category,
                        &a.extra,
                    );
                    assert_eq!(
                        ours,
                        (
                            number(e.id),
                            &e.item_name,
                            &e.description,
                            number(e.initial_bid),
                            number(e.reserve),
                            e.date_time,
                            e.expires,
                            number(e.seller),
                            number(e.category),
                            &e.extra
                        ),
                        "event {i}"
                    );
                }
                Event::Bid(e) => {
                    assert_eq!(config.kind(i), Kind::Bid);
                    config.bid(i, &mut bid);
                    let ours = (bid.auction, bid.bidder, bid.price, bid.channel, bid.url, bid.time, &bid.extra);
                    assert_eq!(
                        ours,
                        (
                            number(e.auction),
                            number(e.bidder),
                            number(e.price),
                            &*e.channel,
                            &*e.url,
                            e.date_time,
                            &e.extra
                        ),
                        "event {i}"
                    );
                }
            }
        }
    }

    fn reference() -> NexmarkConfig {
        NexmarkConfig { base_time: BASE, ..Default::default() }
    }

    #[test]
    fn every_event_is_that_of_the_reference() {
        agrees(&config(), reference(), 0, 20_000);
        agrees(&config(), reference(), 50_000_000, 2_000);
    }

    #[test]
    fn options_mean_what_they_mean_to_the_reference() {
        let ours = Config {
            rate: 777,
            person_proportion: 2,
            auction_proportion: 5,
            bid_proportion: 13,
            person_size: 90,
            auction_size: 160,
            bid_size: 33,
            hot_auctions: 7,
            hot_bidders: 1,
            hot_sellers: 3,
            ..config()
        };
        let theirs = NexmarkConfig {
            first_rate: 777,
            next_rate: 777,
            person_proportion: 2,
            auction_proportion: 5,
            bid_proportion: 13,
            avg_person_byte_size: 90,
            avg_auction_byte_size: 160,
            avg_bid_byte_size: 33,
            hot_auction_ratio: 7,
            hot_bidder_ratio: 1,
            hot_seller_ratio: 3,
            ..reference()
        };
        agrees(&ours, theirs, 0, 5_000);
    }
}
