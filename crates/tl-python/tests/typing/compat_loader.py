"""Code for the first turboloader."""

from turboloader import compat


def main() -> None:
    transform = compat.Resize(224, 224) | compat.RandomHorizontalFlip(0.5) | compat.ToTensor()
    loader = compat.DataLoader("train.tar", 64, 8, True, transform)
    for batch in loader:
        print(batch)
